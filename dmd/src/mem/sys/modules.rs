//! The program and the libraries that the dynamic linker has loaded, with their build ids.
#![expect(
    unsafe_code,
    reason = "calls the dynamic linker, and reads modules where they are loaded"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses have 64 bits on all supported systems"
)]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// A program or library that the dynamic linker has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) path: String,
    /// True for the program itself.
    pub(crate) is_program: bool,
    /// The difference between addresses in memory and addresses in the file.
    pub(crate) bias: usize,
    /// The address ranges of its segments in memory.
    pub(crate) segments: Vec<(usize, usize)>,
    /// The writable ones of these ranges, which contain its statics.
    pub(crate) data: Vec<(usize, usize)>,
    /// The build id, in hexadecimal.
    pub(crate) build_id: Option<String>,
}

/// Returns the loaded modules. It takes the linker's lock: never call it from a hook.
pub(crate) fn modules() -> Vec<Module> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        found: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description for the duration of the call.
        let info = unsafe { &*info };
        // SAFETY: this is the vector passed below, which is not used elsewhere during the call.
        let found = unsafe { &mut *found.cast::<Vec<Module>>() };
        // SAFETY: `dlpi_phdr` points to `dlpi_phnum` headers of a loaded module.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        // SAFETY: `dlpi_name` is a C string of the linker, alive during the call.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        found.push(module(name, info.dlpi_addr as usize, headers));
        0
    }
    let mut found: Vec<Module> = Vec::new();
    // SAFETY: `visit` keeps no reference to the vector after the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

fn module(name: &CStr, bias: usize, headers: &[libc::Elf64_Phdr]) -> Module {
    let range = |header: &libc::Elf64_Phdr| {
        let start = bias.wrapping_add(header.p_vaddr as usize);
        (start, start + header.p_memsz as usize)
    };
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let data = loaded().filter(|header| header.p_flags & libc::PF_W != 0).map(range).collect();
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE).map(range);
    // The program itself: glibc leaves its name empty, musl gives this one.
    let is_program = matches!(name.to_bytes(), b"" | b"/proc/self/exe");
    let path = match name.to_bytes() {
        _ if is_program => {
            std::env::current_exe().unwrap_or_default().to_string_lossy().into_owned()
        }
        name => String::from_utf8_lossy(name).into_owned(),
    };
    let segments: Vec<_> = loaded().map(range).collect();
    let build_id = notes
        .filter(|&(start, end)| segments.iter().any(|&(low, high)| low <= start && end <= high))
        // SAFETY: the range lies in a loaded segment, which stays while the linker's lock is held.
        .find_map(|(start, end)| build_id(unsafe { bytes_at(start, end) }))
        .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
    Module { path, is_program, bias, segments, data, build_id }
}

/// # Safety
///
/// The range is mapped and readable for as long as the slice is used.
unsafe fn bytes_at(start: usize, end: usize) -> &'static [u8] {
    // SAFETY: by this function's contract the range is readable; bytes need no alignment.
    unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(start), end - start) }
}

/// Returns the build id in the notes of a segment.
pub(crate) fn build_id(notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let is_build_id =
        |note: &Note<'_>| note.kind == NT_GNU_BUILD_ID && note.name.starts_with(b"GNU\0");
    notes_in(notes).find(is_build_id).map(|note| note.description)
}

/// A note of a segment.
struct Note<'a> {
    /// The name, with zeros up to a multiple of four.
    name: &'a [u8],
    kind: u32,
    description: &'a [u8],
}

fn notes_in(mut notes: &[u8]) -> impl Iterator<Item = Note<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = notes.split_at_checked(12)?;
        let word = |at: usize| {
            head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes)
        };
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, rest) = rest.split_at_checked(name_size.next_multiple_of(4))?;
        let (description, rest) = rest.split_at_checked(size.next_multiple_of(4))?;
        notes = rest;
        Some(Note { name, kind, description: description.get(..size)? })
    })
}

/// Returns the description of the program's own note of this name and kind, which is in memory for
/// as long as the program runs. Hooks may call it.
pub(crate) fn program_note(name: [u8; 12], kind: u32) -> Option<&'static [u8]> {
    // SAFETY: a plain call.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    // SAFETY: a plain call.
    let count = unsafe { libc::getauxval(libc::AT_PHNUM) } as usize;
    if headers == 0 {
        return None;
    }
    let first = ptr::with_exposed_provenance::<libc::Elf64_Phdr>(headers);
    // SAFETY: the kernel's notes about the program: so many headers at this address.
    let table = unsafe { std::slice::from_raw_parts(first, count) };
    let of_kind = |kind| table.iter().filter(move |header| header.p_type == kind);
    let bias = of_kind(libc::PT_PHDR).next().map_or(0, |own| headers - own.p_vaddr as usize);
    of_kind(libc::PT_NOTE).find_map(|header| {
        let start = bias + header.p_vaddr as usize;
        // SAFETY: notes are in a segment of the program, which stays mapped.
        let notes = unsafe { bytes_at(start, start + header.p_memsz as usize) };
        let found = notes_in(notes).find(|note| note.name == name && note.kind == kind);
        found.map(|note| note.description)
    })
}

/// Returns the path of the module that contains this code.
pub(crate) fn own_module_path() -> Option<String> {
    path_of(&module_with(own_module_path as *const c_void)?)
}

/// Returns the range of addresses of the module that contains this code. It takes the linker's
/// lock: never call it from a hook.
pub(crate) fn module_of(code: usize) -> Option<(usize, usize)> {
    let contains =
        |module: &Module| module.segments.iter().any(|&(low, high)| (low..high).contains(&code));
    let found = modules().into_iter().find(contains)?;
    let low = found.segments.iter().map(|segment| segment.0).min()?;
    Some((low, found.segments.iter().map(|segment| segment.1).max()?))
}

/// Returns the path of the module that defines a function of this name for the program.
pub(crate) fn module_path_of(function: &CStr) -> Option<String> {
    // SAFETY: the name is a C string, and a look-up has no side effects.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.as_ptr()) };
    path_of(&module_with(found)?)
}

/// Has the C library allocate a block and free it, by the functions that the program calls.
pub(crate) fn allocate_in_c_library() {
    // SAFETY: the text is a C string.
    let copy = unsafe { libc::strdup(c"text".as_ptr()) };
    // The compiler leaves out pairs of such calls otherwise.
    let copy = std::hint::black_box(copy);
    // SAFETY: null or a block of the call above, which nothing else has.
    unsafe { libc::free(copy.cast()) };
}

/// Returns the linker's description of the module that contains this address.
fn module_with(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is valid for the write of one `Dl_info`.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: the successful call above initialised it.
    Some(unsafe { info.assume_init() })
}

fn path_of(module: &libc::Dl_info) -> Option<String> {
    let name = module.dli_fname;
    // SAFETY: a non-null name is a C string of the linker, alive while its code is loaded.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_a_module_with_a_build_id() {
        let modules = modules();
        let here = this_program_is_a_module_with_a_build_id as *const () as usize;
        let own = modules
            .iter()
            .find(|module| module.segments.iter().any(|&(low, high)| (low..high).contains(&here)));
        let own = own.expect("the program is loaded");
        assert!(own.path.contains("dmd"), "{}", own.path);
        assert!(own.build_id.as_ref().is_some_and(|id| id.len() >= 32), "{:?}", own.build_id);
    }

    #[test]
    fn notes_without_a_build_id_have_none() {
        assert_eq!(build_id(b""), None);
        assert_eq!(build_id(b"\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0ab\0\0"), None);
        assert_eq!(
            build_id(b"\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0\xab\x01\0\0"),
            Some(&[0xab, 1][..])
        );
    }

    #[test]
    fn the_module_of_an_address_contains_it() {
        let here = the_module_of_an_address_contains_it as *const () as usize;
        let (low, high) = module_of(here).expect("the program is loaded");
        assert!(low <= here && here < high);
        let library =
            module_of(libc::getpid as *const () as usize).expect("the C library is loaded");
        assert!(library != (low, high) || cfg!(target_feature = "crt-static"), "another module");
        assert_eq!(module_of(16), None);
    }
}
