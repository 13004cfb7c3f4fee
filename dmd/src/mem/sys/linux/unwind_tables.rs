//! The unwind information of modules, by their ELF headers: from the dynamic linker without a lock.
#![expect(
    unsafe_code,
    reason = "calls the dynamic linker, and reads modules where they are loaded"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses have 64 bits on all supported systems"
)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::Linux;
use crate::mem::sys::modules::{FoundModule, UnwindModule, build_id};
use crate::mem::sys::system::System;

/// The linker's function `_dl_find_object` (glibc 2.35 and later); 0 if there is none.
static DL_FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// The result of `_dl_find_object`. Its layout is part of the linker's ABI.
#[repr(C)]
struct Object {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    link_map: *mut c_void,
    index: *mut c_void,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Object) -> c_int;

/// Calls `visit` with the modules that are loaded and have unwind information. It takes the
/// linker's lock.
pub(super) fn each(mut visit: &mut dyn FnMut(UnwindModule)) {
    unsafe extern "C" fn one(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description for the duration of the call.
        let info = unsafe { &*info };
        // SAFETY: this is the function passed below, which is not used elsewhere during the call.
        let visit = unsafe { &mut *visit.cast::<&mut dyn FnMut(UnwindModule)>() };
        // SAFETY: `dlpi_phdr` points to `dlpi_phnum` headers of a loaded module.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        if let Some(module) = from_headers(info.dlpi_addr as usize, headers) {
            visit(module);
        }
        0
    }
    // SAFETY: the name is a C string, and a look-up has no side effects.
    let find = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    DL_FIND_OBJECT.store(find.expose_provenance(), Relaxed);
    // SAFETY: `one` keeps no reference to the function after the call.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut visit).cast()) };
}

/// Reads the program headers. Returns `None` if the module has no unwind information.
fn from_headers(bias: usize, headers: &[libc::Elf64_Phdr]) -> Option<UnwindModule> {
    let place = |header: &libc::Elf64_Phdr| {
        let start = bias.wrapping_add(header.p_vaddr as usize);
        (start, start.wrapping_add(header.p_memsz as usize))
    };
    let segments = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(place);
    let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
    let (index, _) = place(index?);
    let (start, end) = segments().find(|&(low, high)| low <= index && index < high)?;
    let low = segments().map(|(low, _)| low).min()?;
    let high = segments().map(|(_, high)| high).max()?;
    Some(UnwindModule { low, high, start, end, index })
}

/// Returns the module of this code, if the linker tells it without a lock.
pub(super) fn find(code: usize) -> Option<FoundModule> {
    let object = find_object(code)?;
    let headers = headers(&object)?;
    let first = headers.iter().find(|header| header.p_type == libc::PT_LOAD)?;
    let bias = object.start.addr().wrapping_sub(first.p_vaddr as usize & !(Linux::PAGE - 1));
    let module = from_headers(bias, headers)?;
    Some(FoundModule { module, fingerprint: fingerprint_of(&object) })
}

/// Returns the fingerprint of the module of this code.
pub(super) fn fingerprint(code: usize) -> Option<u64> {
    fingerprint_of(&find_object(code)?)
}

fn find_object(code: usize) -> Option<Object> {
    let find = ptr::with_exposed_provenance::<()>(DL_FIND_OBJECT.load(Relaxed));
    // SAFETY: the value is 0, which is `None`, or the address of `_dl_find_object`, which has this
    // type.
    let find: Option<FindObject> = unsafe { std::mem::transmute(find) };
    let none = ptr::null_mut();
    let mut object =
        Object { flags: 0, start: none, end: none, link_map: none, index: none, reserved: [0; 7] };
    // SAFETY: the function accepts any address, and `object` is valid for the write.
    let failed = unsafe { find?(ptr::without_provenance_mut(code), &raw mut object) };
    (failed == 0).then_some(object)
}

/// Returns the program headers in the first page of a module, where linkers put them.
fn headers(object: &Object) -> Option<&'static [libc::Elf64_Phdr]> {
    let first = object.start.cast::<libc::Elf64_Ehdr>();
    // SAFETY: the module is loaded, and its first page is readable; the header is smaller than a
    // page.
    let header = unsafe { &*first };
    let table = usize::try_from(header.e_phoff).ok()?;
    let count = usize::from(header.e_phnum);
    let end = table.checked_add(count * size_of::<libc::Elf64_Phdr>());
    let fits = end.is_some_and(|end| end <= Linux::PAGE);
    if !header.e_ident.starts_with(b"\x7fELF") || !fits || !table.is_multiple_of(8) {
        return None;
    }
    // SAFETY: `table` is at most `PAGE`, and so inside the first page.
    let table = unsafe { object.start.cast::<u8>().add(table) };
    // SAFETY: `fits` ensures that `count` headers lie inside the first page. The table is aligned
    // to 8.
    Some(unsafe { std::slice::from_raw_parts(table.cast(), count) })
}

/// Returns a hash of a module's address and build id.
fn fingerprint_of(object: &Object) -> Option<u64> {
    let in_first_page = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_NOTE
            && header.p_offset.checked_add(header.p_memsz).is_some_and(|end| end <= 4096)
    };
    let build_id = headers(object)?.iter().filter(in_first_page).find_map(|header| {
        // SAFETY: `in_first_page` ensures that the notes lie inside the first page.
        let notes = unsafe { object.start.cast::<u8>().add(header.p_offset as usize) };
        // SAFETY: the notes lie inside the first page, which is readable.
        build_id(unsafe { std::slice::from_raw_parts(notes, header.p_memsz as usize) })
    })?;
    let mix = |fingerprint: u64, word: u64| {
        (fingerprint ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    };
    let place = mix(object.start.addr() as u64, object.index.addr() as u64);
    let words = build_id.as_chunks::<8>();
    let rest = words.1.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let all = words.0.iter().map(|word| u64::from_ne_bytes(*word)).chain([rest]);
    Some(all.fold(place, mix))
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;
    use std::sync::atomic::AtomicU8;

    use super::*;

    #[test]
    fn a_module_is_known_by_its_build_id() {
        each(&mut |_| {});
        if DL_FIND_OBJECT.load(Relaxed) == 0 {
            // An older C library.
            return;
        }
        let [code, same, other] =
            [libc::getpid as *const (), libc::getppid as *const (), each as *const ()]
                .map(|function| function.addr());
        let known = fingerprint(code).expect("the C library has a build id");
        assert_eq!(fingerprint(same), Some(known));
        assert_ne!(fingerprint(other), Some(known));
        assert_eq!(fingerprint(0x1000), None);

        let found = find(code).expect("it is loaded");
        assert_eq!(found.fingerprint, Some(known));
        let mut listed = None;
        each(&mut |module| {
            if (module.low..module.high).contains(&code) {
                listed = Some(module);
            }
        });
        assert_eq!(Some(found.module), listed);
    }

    /// The first page of a module. Its bytes are atomic so that safe code may change them.
    #[repr(align(4096))]
    struct Page([AtomicU8; 4096]);

    impl Page {
        fn write(&self, at: usize, bytes: &[u8]) {
            for (place, byte) in self.0[at..].iter().zip(bytes) {
                place.store(*byte, Relaxed);
            }
        }

        /// Returns the fingerprint of the module, whose only program header has this type, and
        /// notes of this size at this offset.
        fn fingerprint(&self, p_type: u32, offset: usize, size: u64) -> Option<u64> {
            const TABLE: usize = size_of::<libc::Elf64_Ehdr>();
            self.write(0, b"\x7fELF");
            self.write(offset_of!(libc::Elf64_Ehdr, e_phoff), &TABLE.to_ne_bytes());
            self.write(offset_of!(libc::Elf64_Ehdr, e_phnum), &1_u16.to_ne_bytes());
            self.write(TABLE + offset_of!(libc::Elf64_Phdr, p_type), &p_type.to_ne_bytes());
            self.write(TABLE + offset_of!(libc::Elf64_Phdr, p_offset), &offset.to_ne_bytes());
            self.write(TABLE + offset_of!(libc::Elf64_Phdr, p_memsz), &size.to_ne_bytes());
            let none = ptr::null_mut();
            let start = self.0.as_ptr().cast_mut().cast();
            let (end, link_map, index) = (none, none, none);
            fingerprint_of(&Object { flags: 0, start, end, link_map, index, reserved: [0; 7] })
        }
    }

    #[test]
    fn each_bit_of_a_build_id_changes_the_fingerprint() {
        static PAGE: Page = Page([const { AtomicU8::new(0) }; 4096]);
        // The sizes of name and build id, the type, and the name.
        let head = [&[4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0], &b"GNU\0"[..]].concat();
        let build_id: [u8; 20] = std::array::from_fn(|place| (place * 37) as u8);
        let with_note = |at: usize, build_id: &[u8]| {
            PAGE.write(at, &head);
            PAGE.write(at + head.len(), build_id);
        };
        let (at, size) = (256, 36);
        with_note(at, &build_id);
        let whole = PAGE.fingerprint(libc::PT_NOTE, at, size).expect("it has a build id");
        for bit in 0..build_id.len() * 8 {
            let mut other = build_id;
            other[bit / 8] ^= 1 << (bit % 8);
            with_note(at, &other);
            let found = PAGE.fingerprint(libc::PT_NOTE, at, size).expect("it has a build id");
            assert_ne!(found, whole, "bit {bit}");
        }
        with_note(at, &build_id);
        assert_eq!(PAGE.fingerprint(libc::PT_NOTE, at, size), Some(whole));
        // Only notes inside the first page are read.
        assert_eq!(PAGE.fingerprint(libc::PT_LOAD, at, size), None);
        let last = 4096 - 36;
        with_note(last, &build_id);
        assert_eq!(PAGE.fingerprint(libc::PT_NOTE, last, size), Some(whole));
        assert_eq!(PAGE.fingerprint(libc::PT_NOTE, last, size + 1), None);
        assert_eq!(PAGE.fingerprint(libc::PT_NOTE, last, u64::MAX), None);
    }

    #[test]
    fn unwind_information_lies_inside_a_loaded_segment() {
        let header = |p_type, p_vaddr, p_memsz| libc::Elf64_Phdr {
            p_type,
            p_flags: 0,
            p_offset: 0,
            p_vaddr,
            p_paddr: 0,
            p_filesz: 0,
            p_memsz,
            p_align: 0,
        };
        let index = |address| header(libc::PT_GNU_EH_FRAME, address, 0x40);
        let segments = [(0x3000, 0x1000), (0x1000, 0x500), (0x5000, 0x10)]
            .map(|(address, size)| header(libc::PT_LOAD, address, size));
        let (low, high) = (0x1_1000, 0x1_5010);
        let module = |start, end, index| UnwindModule { low, high, start, end, index };
        let table = [
            (Some(0x3200), Some(module(0x1_3000, 0x1_4000, 0x1_3200))),
            (Some(0x3000), Some(module(0x1_3000, 0x1_4000, 0x1_3000))),
            (Some(0x1400), Some(module(0x1_1000, 0x1_1500, 0x1_1400))),
            (Some(0x4000), None),
            (Some(0x2fff), None),
            (None, None),
        ];
        for (address, expected) in table {
            let headers: Vec<_> = segments.into_iter().chain(address.map(index)).collect();
            assert_eq!(from_headers(0x1_0000, &headers), expected, "{address:x?}");
        }
        let without_segments = [index(0x3200)];
        assert_eq!(from_headers(0x1_0000, &without_segments), None);
    }
}
