//! Reads what describes the heap from a core file: core(5), elf(5).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64, NT_FILE, NT_PRSTATUS, PT_LOAD, ProgramHeader64};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{FileKind, LittleEndian};
use std::fmt;

use super::arenas::main_top;
use super::image::{Areas, Image, THREAD_LOCALS, words_of};
use super::mapped::{Search, find_mapped};
use super::places::Places;
use crate::other_process::is_c_library;

/// The reason why a core file cannot be read, with the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum CoreError {
    /// It cannot be opened or read.
    Unreadable(PathBuf, io::Error),
    /// It is no core file.
    NotACore(PathBuf),
    /// It is of another processor.
    OtherMachine(PathBuf),
    /// It ends early.
    CutOff(PathBuf),
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoreError::Unreadable(path, error) => write!(f, "{}: {error}", path.display()),
            CoreError::NotACore(path) => {
                write!(f, "{}: neither the number of a process nor a core file", path.display())
            }
            CoreError::OtherMachine(path) => {
                write!(f, "{}: a core file of another processor than x86-64", path.display())
            }
            CoreError::CutOff(path) => write!(
                f,
                "{}: the core file is cut off; raise its limit (ulimit -c unlimited), or free space on the disk",
                path.display()
            ),
        }
    }
}

impl std::error::Error for CoreError {}

/// The most bytes of all notes.
const MAX_NOTES: u64 = 256 << 20;

/// The place of `fs_base` in a thread's status: 112 bytes before the registers, of which it is the
/// 22nd.
const FS_BASE: usize = 112 + 21 * 8;

/// A piece of memory in the file.
struct Segment {
    range: Range<u64>,
    offset: u64,
    is_writable: bool,
}

/// Reads the image.
///
/// # Errors
///
/// The file is not a whole core file of this kind of processor.
pub(crate) fn read_core(path: &Path) -> Result<Image, CoreError> {
    let unreadable = |error| CoreError::Unreadable(path.to_owned(), error);
    let file = File::open(path).map_err(unreadable)?;
    let data = file.metadata().map_err(unreadable)?;
    if !data.is_file() {
        return Err(CoreError::NotACore(path.to_owned()));
    }
    let cache = ReadCache::new(&file);
    let not_a_core = || CoreError::NotACore(path.to_owned());
    if !matches!(FileKind::parse(&cache), Ok(FileKind::Elf64 | FileKind::Elf32)) {
        return Err(not_a_core());
    }
    let other = || CoreError::OtherMachine(path.to_owned());
    let header = FileHeader64::<LittleEndian>::parse(&cache).map_err(|_| other())?;
    if header.e_type.get(LittleEndian) != elf::ET_CORE {
        return Err(not_a_core());
    }
    if header.e_machine.get(LittleEndian) != elf::EM_X86_64 {
        return Err(other());
    }
    let headers = header.program_headers(LittleEndian, &cache).map_err(|_| not_a_core())?;
    let mut image = Image::default();
    let mut library = Vec::new();
    for header in headers {
        // A note that is no note tells nothing.
        let Ok(Some(mut notes)) = header.notes(LittleEndian, &cache) else { continue };
        if header.p_filesz(LittleEndian) > MAX_NOTES {
            return Err(not_a_core());
        }
        while let Ok(Some(note)) = notes.next() {
            match note.n_type(LittleEndian) {
                NT_FILE => library = library_ranges(note.desc()),
                NT_PRSTATUS => image.thread_pointers.extend(word_in(note.desc(), FS_BASE)),
                _ => {}
            }
        }
    }
    let segments = headers.iter().filter(|header| header.p_type(LittleEndian) == PT_LOAD);
    let segments: Vec<Segment> = segments.map(segment).collect();
    let end = segments.iter().map(|segment| segment.offset.saturating_add(length(&segment.range)));
    if end.max().is_some_and(|end| end > data.len()) {
        return Err(CoreError::CutOff(path.to_owned()));
    }
    fill(&mut image, &file, &segments, &library).map_err(unreadable)?;
    Ok(image)
}

fn segment(header: &ProgramHeader64<LittleEndian>) -> Segment {
    let start = header.p_vaddr(LittleEndian);
    Segment {
        range: start..start.saturating_add(header.p_filesz(LittleEndian)),
        offset: header.p_offset(LittleEndian),
        is_writable: header.p_flags(LittleEndian).contains(elf::PF_W),
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// Copies the pieces that describe a heap.
fn fill(
    image: &mut Image,
    file: &File,
    segments: &[Segment],
    library: &[Range<u64>],
) -> io::Result<()> {
    let read = |segment: &Segment, range: Range<u64>| {
        let mut bytes = vec![0; usize::try_from(length(&range)).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, segment.offset + range.start - segment.range.start)?;
        io::Result::Ok(bytes)
    };
    // A range may begin in one piece and end in the next.
    let copy = |areas: &mut Areas, range: Range<u64>| {
        for segment in segments {
            let start = segment.range.start.max(range.start);
            let end = segment.range.end.min(range.end);
            if start < end {
                areas.add(start, read(segment, start..end)?);
            }
        }
        io::Result::Ok(())
    };
    let words = |at: u64| {
        let segment = segments.iter().find(|segment| segment.range.contains(&at))?;
        let end = at.checked_add(16).filter(|end| *end <= segment.range.end)?;
        words_of(&read(segment, at..end).ok()?)
    };
    let mut places = Places::default();
    let mut library_end = None;
    for segment in segments.iter().filter(|segment| segment.is_writable) {
        let range = segment.range.clone();
        if library.iter().any(|library| library.contains(&range.start)) {
            library_end = Some(range.end);
            places.add_library(range);
        } else if library_end == Some(range.start) {
            places.add_zeros(range);
        } else {
            places.add_private(range, |at| Some(words(at)?[0]));
        }
    }
    let Places { library, arena_heaps, private } = places;
    for range in library.iter().chain(&arena_heaps) {
        copy(&mut image.areas, range.clone())?;
    }
    (image.library, image.arena_heaps) = (library, arena_heaps);
    // The main arena's row is the piece that its end is in.
    let top = main_top(image);
    image.heap = private.iter().find(|range| top.is_some_and(|top| range.contains(&top))).cloned();
    if let Some(heap) = image.heap.clone() {
        copy(&mut image.areas, heap)?;
    }
    for range in private.into_iter().filter(|range| image.heap.as_ref() != Some(range)) {
        find_mapped(range, Search::Whole, words, &mut image.mapped);
    }
    for pointer in image.thread_pointers.clone() {
        copy(&mut image.areas, pointer.saturating_sub(THREAD_LOCALS)..pointer)?;
    }
    Ok(())
}

/// Returns the mapped ranges of glibc's files, from the kernel's list of mapped files: their
/// number, the unit of offsets, then start, end and offset of each, then the names.
fn library_ranges(note: &[u8]) -> Vec<Range<u64>> {
    let Some(count) = word_in(note, 0).and_then(|count| usize::try_from(count).ok()) else {
        return Vec::new();
    };
    let Some(names) = count.checked_mul(24).and_then(|bytes| note.get(16 + bytes..)) else {
        return Vec::new();
    };
    let names = names.split(|byte| *byte == 0).take(count);
    let found = names.enumerate().filter_map(|(index, name)| {
        let name = name.rsplit(|byte| *byte == b'/').next()?;
        if !is_c_library(&String::from_utf8_lossy(name)) {
            return None;
        }
        let place = 16 + 24 * index;
        Some(word_in(note, place)?..word_in(note, place + 8)?)
    });
    found.collect()
}

fn word_in(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
