//! The images that the dynamic linker has loaded, and the functions of the tracker's own image.
//!
//! Another thread may unload an image at any time: its header and its name are copied by the
//! kernel, which fails where nothing is mapped.
#![expect(unsafe_code, reason = "reads its own image, and a list that hooks read")]

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use super::kernel;
use crate::mem::sys::mach_o::{HEADER, Image, function_starts, length};
use crate::mem::sys::memory;
use crate::mem::sys::modules::{Module, UnwindModule, hexadecimal};

/// The most bytes of load commands, and of a path, that are read.
const MAX_LENGTH: usize = 1 << 20;
const MAX_PATH: usize = 1024;

/// An image in memory.
struct Loaded {
    path: String,
    /// The address of the header.
    start: usize,
    slide: usize,
    /// The header and its load commands.
    bytes: Vec<u8>,
}

/// Returns the loaded images, as many as can be read. It takes the linker's lock for each.
fn loaded() -> impl Iterator<Item = Loaded> {
    (0..kernel::_dyld_image_count()).filter_map(|index| {
        // Null, 0 and null for an image that is not there any more.
        let start = kernel::_dyld_get_image_header(index).addr();
        let slide = kernel::_dyld_get_image_vmaddr_slide(index).cast_unsigned();
        let name = kernel::_dyld_get_image_name(index).addr();
        let bytes = copied(start, length(&copied(start, HEADER)?)?.min(MAX_LENGTH))?;
        Some(Loaded { path: path_at(name), start, slide, bytes })
    })
}

/// Returns a copy of so many bytes at an aligned address.
fn copied(address: usize, bytes: usize) -> Option<Vec<u8>> {
    let mut words = vec![0; bytes.div_ceil(size_of::<usize>())];
    let is_there = address != 0 && kernel::read_words(address, &mut words) == words.len();
    is_there.then_some(())?;
    Some(words.into_iter().flat_map(usize::to_ne_bytes).take(bytes).collect())
}

/// Returns the path at this address, up to its zero. It is empty if it cannot be read.
fn path_at(address: usize) -> String {
    const WORD: usize = size_of::<usize>();
    // Words, since it may lie at the end of a page.
    let (start, before) = (address & !(WORD - 1), address % WORD);
    let mut words = [0; MAX_PATH / WORD];
    let read = if address == 0 { 0 } else { kernel::read_words(start, &mut words) };
    let bytes = words[..read].iter().flat_map(|word| word.to_ne_bytes()).skip(before);
    let path: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&path).into_owned()
}

/// Returns the loaded modules, the program first.
pub(super) fn modules() -> Vec<Module> {
    let mut modules: Vec<Module> = loaded().filter_map(|loaded| module(&loaded)).collect();
    // The linker's first image is the program, or a library that was inserted before it.
    modules.sort_by_key(|module| !module.is_program);
    modules
}

fn module(loaded: &Loaded) -> Option<Module> {
    let image = Image::read(&loaded.bytes)?;
    let ranges = |wanted: fn(bool) -> bool| {
        let of_kind = image.segments().filter(move |segment| wanted(segment.is_writable()));
        of_kind.filter_map(|segment| segment.range(loaded.slide)).collect()
    };
    Some(Module {
        path: loaded.path.clone(),
        is_program: image.is_program,
        bias: loaded.slide,
        segments: ranges(|_| true),
        data: ranges(|is_writable| is_writable),
        build_id: image.uuid().map(hexadecimal),
    })
}

/// Returns the range of the segment that contains this code. The system's libraries lie between
/// each other: from the first segment of one to its last there are others.
pub(super) fn range_of(code: usize) -> Option<(usize, usize)> {
    let module = modules().into_iter().find(|module| module.contains(code))?;
    module.segments.into_iter().find(|&(low, high)| (low..high).contains(&code))
}

/// The functions of the tracker's own image, as distances from its header, and their number, which
/// is stored last. Hooks read them.
static FUNCTIONS: AtomicPtr<u32> = AtomicPtr::new(ptr::null_mut());
static FUNCTION_COUNT: AtomicUsize = AtomicUsize::new(0);
/// The address of the image's header, and the end of its code.
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);

/// Calls `visit` with the code of each image, the program's first, and stores the functions of the
/// tracker's own.
pub(super) fn each_code(visit: &mut dyn FnMut(UnwindModule)) {
    let mut all: Vec<_> = loaded().collect();
    let is_program = |loaded: &Loaded| Image::read(&loaded.bytes).is_some_and(|it| it.is_program);
    all.sort_by_key(|loaded| !is_program(loaded));
    for loaded in &all {
        let Some(image) = Image::read(&loaded.bytes) else { continue };
        let mut code = image.segments().filter(|segment| segment.is_executable());
        let Some((low, high)) = code.find_map(|segment| segment.range(loaded.slide)) else {
            continue;
        };
        if (low..high).contains(&(each_code as *const () as usize)) {
            store_functions(image, loaded, high);
        }
        visit(UnwindModule { low, high, start: 0, end: 0, index: 0 });
    }
}

/// Stores the functions of the image that contains this code, once.
fn store_functions(image: Image<'_>, loaded: &Loaded, end: usize) {
    // Relaxed: only the thread that calls `main` stores them.
    if FUNCTION_COUNT.load(Relaxed) != 0 {
        return;
    }
    let Some((from, to)) = image.function_list(loaded.slide) else { return };
    // SAFETY: the list lies in a segment of this image, which is loaded, readable and not written.
    let list = unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(from), to - from) };
    let count = function_starts(list).count();
    let Some(pages) = memory::map(count * size_of::<u32>()) else { return };
    let place = pages.cast::<u32>();
    for (index, function) in function_starts(list).take(count).enumerate() {
        // SAFETY: `index` is below `count`, so the place lies inside the mapping.
        let place = unsafe { place.add(index) };
        // SAFETY: the mapping is writable and aligned, and no other thread has it yet.
        unsafe { place.write(function) };
    }
    FUNCTIONS.store(place.as_ptr(), Relaxed);
    START.store(loaded.start, Relaxed);
    END.store(end, Relaxed);
    // Release, with the Acquire of `function_start`: the list is complete.
    FUNCTION_COUNT.store(count, Release);
}

/// Returns the start of the function of the tracker's own image that contains this code. It takes
/// no lock and no memory.
pub(super) fn function_start(code: usize) -> Option<usize> {
    // Acquire, with the Release of `store_functions`. The loads below are Relaxed for that reason.
    let count = FUNCTION_COUNT.load(Acquire);
    let (start, end) = (START.load(Relaxed), END.load(Relaxed));
    if count == 0 || !(start..end).contains(&code) {
        return None;
    }
    // SAFETY: the list has `count` words, which are never written again or unmapped.
    let functions = unsafe { std::slice::from_raw_parts(FUNCTIONS.load(Relaxed), count) };
    let distance = u32::try_from(code - start).ok()?;
    let behind = functions.partition_point(|function| *function <= distance);
    Some(start + *functions.get(behind.checked_sub(1)?)? as usize)
}

/// The marker of programs with DMD, in their files.
#[used]
// SAFETY: plain bytes in a section that no other code defines.
#[unsafe(link_section = "__DATA,__memreport_dmd")]
static MARKER: [u8; 4] = *b"DMD1";

/// Keeps the marker.
#[inline(never)]
pub(super) fn keep_marks() {
    std::hint::black_box(&MARKER);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_begins_at_its_address() {
        each_code(&mut |_| {});
        let function = a_function_begins_at_its_address as *const () as usize;
        assert_eq!(function_start(function), Some(function));
        assert_eq!(function_start(function + 4), Some(function));
        assert_eq!(function_start(16), None);
    }

    #[test]
    fn a_path_is_read_up_to_its_end() {
        let text = c"/usr/lib/libSystem.B.dylib";
        assert_eq!(path_at(text.as_ptr().addr()), "/usr/lib/libSystem.B.dylib");
        assert_eq!(path_at(0), "");
        assert_eq!(path_at(16), "");
    }
}
