//! The program and the libraries that the dynamic linker has loaded, by their ELF headers.
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

use crate::mem::sys::modules::{Module, TRACKER_NOTE, build_id, hexadecimal, notes_in};

/// Returns the loaded modules. It takes the linker's lock: never call it from a hook.
pub(super) fn all() -> Vec<Module> {
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
        .map(hexadecimal);
    Module { path, is_program, bias, segments, data, build_id }
}

/// # Safety
///
/// The range is mapped and readable for as long as the slice is used.
unsafe fn bytes_at(start: usize, end: usize) -> &'static [u8] {
    // SAFETY: by this function's contract the range is readable; bytes need no alignment.
    unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(start), end - start) }
}

/// Returns the description of the program's own note of this name and kind, which is in memory for
/// as long as the program runs. Hooks may call it.
pub(super) fn program_note(name: [u8; 12], kind: u32) -> Option<&'static [u8]> {
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

/// Returns the range of addresses of the module that contains this code. It takes the linker's
/// lock: never call it from a hook.
pub(super) fn range_of(code: usize) -> Option<(usize, usize)> {
    let found = all().into_iter().find(|module| module.contains(code))?;
    let low = found.segments.iter().map(|segment| segment.0).min()?;
    Some((low, found.segments.iter().map(|segment| segment.1).max()?))
}

/// The marker of programs with DMD. `about-memory run` looks for it in the file of a program.
#[used]
// SAFETY: plain bytes in a section that no other code defines.
#[unsafe(link_section = ".memreport.dmd")]
static MARKER: [u8; 4] = *b"DMD1";

/// Keeps the marker, and puts the same into the program as an ELF note, which is in memory when the
/// program runs: a preloaded tracker looks for it.
///
/// The note is no static: sanitizers put bytes behind statics, also between notes.
#[inline(never)]
pub(super) fn keep_marks() {
    std::hint::black_box(&MARKER);
    #[cfg(not(miri))]
    // SAFETY: no instruction: a note of the usual form in a section for notes.
    unsafe {
        std::arch::asm!(
            ".pushsection .note.memreport,\"a\",%note",
            ".p2align 2",
            ".long 12, 0, {kind}",
            ".asciz \"memreport\"",
            ".zero 2",
            ".popsection",
            kind = const TRACKER_NOTE,
            options(nomem, nostack, preserves_flags),
        );
    }
}
