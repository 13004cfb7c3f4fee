//! Reads what describes the heap from a core file: core(5), elf(5).

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64, NT_AUXV, NT_FILE, NT_PRSTATUS, PT_LOAD, ProgramHeader64};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{FileKind, LittleEndian};
use std::fmt;

use super::collect::{Extent, Memory, collect};
use super::frames;
use super::image::Image;
use super::mapped::Search;
use super::threads::ThreadState;
use crate::other_process::Mapping;

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

/// The places of a thread's number and registers in its status.
const THREAD_NUMBER: usize = 32;
const REGISTERS: usize = 112;

/// The places of `rax`, `rdx`, `rcx`, `rbx`, `rsi`, `rdi`, `rbp`, `rsp` and `r8` to `r15` among
/// those registers: their order in DWARF.
const IN_DWARF: [usize; 16] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0];

/// The end of a program's addresses on x86-64, with four levels of pages.
const ADDRESS_END: u64 = 1 << 47;

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
pub(crate) fn read_core(path: &Path, extent: Extent) -> Result<Image, CoreError> {
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
    let (mut files, mut threads, mut entry) = (Vec::new(), Vec::new(), None);
    for header in headers {
        // A note that is no note tells nothing.
        let Ok(Some(mut notes)) = header.notes(LittleEndian, &cache) else { continue };
        if header.p_filesz(LittleEndian) > MAX_NOTES {
            return Err(not_a_core());
        }
        while let Ok(Some(note)) = notes.next() {
            match note.n_type(LittleEndian) {
                NT_FILE => files = mapped_files(note.desc()),
                NT_AUXV => entry = entry_point(note.desc()),
                NT_PRSTATUS => threads.extend(thread_state(note.desc())),
                _ => {}
            }
        }
    }
    let segments = headers.iter().filter(|header| header.p_type(LittleEndian) == PT_LOAD);
    let segments = segments.map(segment).filter(|segment| is_of_program(&segment.range));
    let segments: Vec<Segment> = segments.collect();
    let end = segments.iter().map(|segment| segment.offset.saturating_add(length(&segment.range)));
    if end.max().is_some_and(|end| end > data.len()) {
        return Err(CoreError::CutOff(path.to_owned()));
    }
    let mappings = mappings(&segments, &files);
    let mut image = collect(&CoreMemory { file: &file, segments }, &mappings, &threads, extent);
    frames::add(&mut image, &mappings, &file_of);
    let program = entry.and_then(|entry| files.iter().find(|file| file.range.contains(&entry)));
    image.program = program.map(|file| file.path.clone());
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

/// Returns whether a program can have these addresses. The kernel's page of functions is above
/// them, and a damaged file may name any.
fn is_of_program(range: &Range<u64>) -> bool {
    range.start <= range.end && range.end <= ADDRESS_END
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// The memory in a core file.
struct CoreMemory<'f> {
    file: &'f File,
    segments: Vec<Segment>,
}

impl CoreMemory<'_> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut file = self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

impl Memory for CoreMemory<'_> {
    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut place = range.start;
        // A range may begin in one piece and end in the next.
        while let Some(segment) =
            self.segments.iter().find(|segment| segment.range.contains(&place))
        {
            let end = segment.range.end.min(range.end);
            if place >= end {
                break;
            }
            let Ok(length) = usize::try_from(end - place) else { break };
            let done = bytes.len();
            bytes.resize(done + length, 0);
            let offset = segment.offset + (place - segment.range.start);
            if self.read_at(&mut bytes[done..], offset).is_err() {
                bytes.truncate(done);
                break;
            }
            place = end;
        }
        bytes
    }

    fn search(&self) -> Search {
        Search::Whole
    }
}

/// A file that was mapped: its range and its path.
struct MappedFile {
    range: Range<u64>,
    path: String,
}

/// Returns the mapped files, from the kernel's list: their number, the unit of offsets, then start,
/// end and offset of each, then the names.
fn mapped_files(note: &[u8]) -> Vec<MappedFile> {
    let Some(count) = word_in(note, 0).and_then(|count| usize::try_from(count).ok()) else {
        return Vec::new();
    };
    let names = count.checked_mul(24).and_then(|bytes| note.get(bytes.checked_add(16)?..));
    let names = names.unwrap_or_default().split(|byte| *byte == 0).take(count);
    let found = names.enumerate().filter_map(|(index, name)| {
        let place = 16 + 24 * index;
        let range = word_in(note, place)?..word_in(note, place + 8)?;
        is_of_program(&range)
            .then(|| MappedFile { range, path: String::from_utf8_lossy(name).into_owned() })
    });
    found.collect()
}

/// Returns the address at which the program begins, of the vector that the kernel gives it
/// (getauxval(3)).
fn entry_point(vector: &[u8]) -> Option<u64> {
    const AT_ENTRY: u64 = 9;
    let kinds = (0..vector.len()).step_by(16);
    let place = kinds.into_iter().find(|place| word_in(vector, *place) == Some(AT_ENTRY))?;
    word_in(vector, place + 8)
}

/// Returns the mappings: those of files, with pieces that are not in the core file, and the others.
fn mappings(segments: &[Segment], files: &[MappedFile]) -> Vec<Mapping> {
    let file_of = |at: u64| files.iter().find(|file| file.range.contains(&at));
    let of_segments = segments.iter().map(|segment| {
        let file = file_of(segment.range.start);
        Mapping {
            range: segment.range.clone(),
            is_writable: segment.is_writable,
            offset: 0,
            inode: u64::from(file.is_some()),
            path: file.map_or_else(String::new, |file| file.path.clone()),
        }
    });
    let is_elsewhere =
        |file: &&MappedFile| segments.iter().all(|segment| segment.range.start != file.range.start);
    let of_files = files.iter().filter(is_elsewhere).map(|file| Mapping {
        range: file.range.clone(),
        is_writable: false,
        offset: 0,
        inode: 1,
        path: file.path.clone(),
    });
    let mut all: Vec<Mapping> = of_segments.chain(of_files).collect();
    all.sort_by_key(|mapping| mapping.range.start);
    // A fork may leave several pieces of one heap, which have no name here.
    all.dedup_by(|next, last| {
        let is_same = |mapping: &Mapping| mapping.is_writable && mapping.inode == 0;
        let joins = is_same(next) && is_same(last) && last.range.end == next.range.start;
        if joins {
            last.range.end = next.range.end;
        }
        joins
    });
    all
}

/// Opens the file of a mapping, if it is a regular one.
fn file_of(mapping: &Mapping) -> Option<File> {
    let is_file = fs::metadata(&mapping.path).is_ok_and(|found| found.is_file());
    is_file.then(|| File::open(&mapping.path).ok()).flatten()
}

/// Returns the state of a thread (`struct elf_prstatus`): its number, and its registers in the
/// order of `struct user_regs_struct`.
fn thread_state(status: &[u8]) -> Option<ThreadState> {
    let number = status.get(THREAD_NUMBER..THREAD_NUMBER + 4)?.try_into().ok()?;
    let register = |at: usize| word_in(status, REGISTERS + 8 * at);
    let mut registers = [0; 16];
    for (known, at) in registers.iter_mut().zip(IN_DWARF) {
        *known = register(at)?;
    }
    Some(ThreadState {
        number: u32::from_le_bytes(number),
        name: None,
        thread_pointer: register(21)?,
        instruction_pointer: register(16)?,
        registers,
    })
}

fn word_in(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(words: &[u64], names: &str) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        words.chain(names.bytes()).collect()
    }

    #[test]
    fn mapped_files_have_their_ranges_and_names() {
        let words = [2, 4096, 0x1000, 0x3000, 0, 0x5000, 0x6000, 1];
        let files = |note: &[u8]| -> Vec<_> {
            mapped_files(note).into_iter().map(|file| (file.range, file.path)).collect()
        };
        let expected = [(0x1000..0x3000, "/p".to_owned()), (0x5000..0x6000, "/lib/a".to_owned())];
        assert_eq!(files(&note(&words, "/p\0/lib/a\0")), expected);
        assert_eq!(files(&note(&words, "/p\0")).len(), 2, "a name that is cut off is empty");
        assert_eq!(files(&note(&[u64::MAX, 4096], "/p\0")), []);
        assert_eq!(files(b"short"), []);
        let words = [2, 4096, 0x3000, 0x1000, 0, u64::MAX - 4096, u64::MAX, 1];
        assert_eq!(files(&note(&words, "/p\0/lib/a\0")), [], "no program has these addresses");
    }

    #[test]
    fn the_program_begins_where_the_vector_tells() {
        let bytes = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        assert_eq!(entry_point(&bytes(&[6, 4096, 9, 0x1040, 0, 0])), Some(0x1040));
        assert_eq!(entry_point(&bytes(&[6, 9, 0, 0])), None);
        assert_eq!(entry_point(&bytes(&[9])), None);
    }

    #[test]
    fn pieces_of_one_heap_are_joined_and_files_without_pieces_are_kept() {
        let segment = |range: Range<u64>, is_writable| Segment { range, offset: 0, is_writable };
        let segments = [
            segment(0x1000..0x2000, false),
            segment(0x8000..0x9000, true),
            segment(0x9000..0xa000, true),
            segment(0xa000..0xb000, false),
            segment(0xc000..0xd000, true),
        ];
        let file = |range, path: &str| MappedFile { range, path: path.to_owned() };
        let files = [file(0x1000..0x2000, "/p"), file(0x4000..0x5000, "/lib/a")];
        let found: Vec<_> = mappings(&segments, &files)
            .into_iter()
            .map(|it| (it.range.start, it.range.end, it.is_writable, it.inode, it.path))
            .collect();
        let expected = [
            (0x1000, 0x2000, false, 1, "/p"),
            (0x4000, 0x5000, false, 1, "/lib/a"),
            (0x8000, 0xa000, true, 0, ""),
            (0xa000, 0xb000, false, 0, ""),
            (0xc000, 0xd000, true, 0, ""),
        ];
        assert_eq!(found, expected.map(|(a, b, c, d, path)| (a, b, c, d, path.to_owned())));
    }

    #[test]
    fn a_thread_has_its_number_and_registers() {
        let mut status = vec![0; REGISTERS + 27 * 8];
        status[THREAD_NUMBER] = 77;
        for register in 0..27_u8 {
            status[REGISTERS + 8 * usize::from(register)] = 100 + register;
        }
        let state = thread_state(&status).unwrap();
        assert_eq!((state.number, state.stack_pointer(), state.thread_pointer), (77, 119, 121));
        let [rax, rdx, rcx, rbx, .., r15] = state.registers;
        assert_eq!((rax, rdx, rcx, rbx, r15), (110, 112, 111, 105, 100));
        assert_eq!(state.instruction_pointer, 116);
        assert_eq!(thread_state(&status[..REGISTERS + 21 * 8]), None);
    }
}
