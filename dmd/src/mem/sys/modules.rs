//! The program and the libraries that the dynamic linker has loaded, as far as all systems agree.
#![expect(unsafe_code, reason = "calls the dynamic linker")]

use std::ffi::{CStr, c_void};

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

impl Module {
    /// Returns whether a segment contains this address.
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.segments.iter().any(|&(low, high)| (low..high).contains(&address))
    }
}

/// The addresses of a module for walks: its range, the segment with its unwind information, and the
/// index of that. The last three are 0 if the module has none that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnwindModule {
    pub(crate) low: usize,
    pub(crate) high: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) index: usize,
}

/// A module that may be unloaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundModule {
    pub(crate) module: UnwindModule,
    /// A hash that distinguishes it from any other module at its address.
    pub(crate) fingerprint: Option<u64>,
}

/// The kind of the note that marks programs with DMD.
pub(crate) const TRACKER_NOTE: u32 = 1;

/// Returns bytes in hexadecimal.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the build id in the notes of an ELF segment or section.
pub(crate) fn build_id(notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let is_build_id =
        |note: &Note<'_>| note.kind == NT_GNU_BUILD_ID && note.name.starts_with(b"GNU\0");
    notes_in(notes).find(is_build_id).map(|note| note.description)
}

/// A note of an ELF segment.
pub(super) struct Note<'a> {
    /// The name, with zeros up to a multiple of four.
    pub(super) name: &'a [u8],
    pub(super) kind: u32,
    pub(super) description: &'a [u8],
}

pub(super) fn notes_in(mut notes: &[u8]) -> impl Iterator<Item = Note<'_>> {
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

/// Returns the path of the module that contains this code.
pub(crate) fn own_module_path() -> Option<String> {
    path_of(&module_with(own_module_path as *const c_void)?)
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
    use crate::mem::sys::{module_of, modules};

    #[test]
    fn this_program_is_a_module_with_a_build_id() {
        let modules = modules();
        let here = this_program_is_a_module_with_a_build_id as *const () as usize;
        let own = modules.iter().find(|module| module.contains(here));
        let own = own.expect("the program is loaded");
        assert!(own.path.contains("dmd"), "{}", own.path);
        assert!(own.build_id.as_ref().is_some_and(|id| id.len() >= 32), "{:?}", own.build_id);
        assert!(own.is_program && modules[0].is_program);
        let data = (&raw const DATA).addr();
        assert!(own.data.iter().any(|&(low, high)| (low..high).contains(&data)));
        assert!(!own.data.iter().any(|&(low, high)| (low..high).contains(&here)));
    }

    static DATA: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);

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
