//! The module of a code address and its unwind information, from the dynamic linker without a lock.
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
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::unwind_info::UnwindInfo;
use crate::mem::sys;

/// A module's unwind information and identity.
pub(crate) struct ModuleInfo {
    pub(crate) unwind_info: UnwindInfo<'static>,
    /// The identity of the module, to check cached rules of it.
    pub(crate) identity: Identity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The module stays loaded until the process ends.
    Permanent,
    /// The module may be unloaded. This hash distinguishes it from any other at its address.
    Fingerprint(u64),
    /// The module may be unloaded, and has no build id to distinguish it.
    Unknown,
}

/// A module that stays loaded: its address range, the segment with its unwind information, and the
/// address of `.eh_frame_hdr` in that segment.
struct PermanentModule {
    low: AtomicUsize,
    high: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    index: AtomicUsize,
}

/// The modules that were loaded with the program. The linker never unloads these. Hooks read them.
static PERMANENT: [PermanentModule; 256] = [const {
    PermanentModule {
        low: AtomicUsize::new(0),
        high: AtomicUsize::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        index: AtomicUsize::new(0),
    }
}; 256];
static PERMANENT_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The address range of the module that contains the tracker.
static OWN_LOW: AtomicUsize = AtomicUsize::new(0);
static OWN_HIGH: AtomicUsize = AtomicUsize::new(0);

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

/// Stores the modules that were loaded with the program. It takes the linker's lock: call it once,
/// before `main`. With `own_is_program`, the tracker's own module was loaded with the program.
pub(crate) fn record_loaded(own_is_program: bool) {
    // SAFETY: the name is a C string, and a look-up has no side effects.
    let find = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    DL_FIND_OBJECT.store(find.expose_provenance(), Relaxed);
    let mut loaded = Loaded { count: 0, own_is_program };
    // SAFETY: `visit` keeps no reference to the value after the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut loaded).cast()) };
}

struct Loaded {
    count: usize,
    /// True if the tracker is part of the program, and not of a library that was loaded later.
    own_is_program: bool,
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    loaded: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description for the duration of the call.
    let info = unsafe { &*info };
    // SAFETY: this is the value passed above, which is not used elsewhere during the call.
    let loaded = unsafe { &mut *loaded.cast::<Loaded>() };
    // SAFETY: `dlpi_phdr` points to `dlpi_phnum` headers of a loaded module.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let Some(module) = Module::from_headers(info.dlpi_addr as usize, headers) else { return 0 };
    let holds = |address: usize| (module.low..module.high).contains(&address);
    let is_own = holds(record_loaded as *const () as usize);
    let is_program = loaded.count == 0;
    loaded.count += 1;
    loaded.own_is_program |= is_program && is_own;
    if is_own {
        OWN_LOW.store(module.low, Relaxed);
        OWN_HIGH.store(module.high, Relaxed);
    }
    // In a library's initialiser, other loaded modules may be unloaded later. Only those that
    // cannot be unloaded are stored.
    let is_c_library = holds(libc::getpid as *const () as usize);
    if is_program || is_own || is_c_library || loaded.own_is_program {
        module.publish();
    }
    0
}

/// The addresses of a module: see [`PermanentModule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Module {
    low: usize,
    high: usize,
    start: usize,
    end: usize,
    index: usize,
}

impl Module {
    /// Reads the program headers. Returns `None` if the module has no unwind information.
    fn from_headers(bias: usize, headers: &[libc::Elf64_Phdr]) -> Option<Module> {
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
        Some(Module { low, high, start, end, index })
    }

    fn publish(self) {
        let count = PERMANENT_COUNT.load(Relaxed);
        let Some(place) = PERMANENT.get(count) else { return };
        place.low.store(self.low, Relaxed);
        place.high.store(self.high, Relaxed);
        place.start.store(self.start, Relaxed);
        place.end.store(self.end, Relaxed);
        place.index.store(self.index, Relaxed);
        // Release, with the Acquire of `find`: the entry is written before it is counted.
        PERMANENT_COUNT.store(count + 1, Release);
    }

    /// # Safety
    ///
    /// The module stays loaded for as long as the result is used.
    unsafe fn unwind_info(self) -> UnwindInfo<'static> {
        let (start, length) = (ptr::with_exposed_provenance(self.start), self.end - self.start);
        // SAFETY: by this function's contract the segment is loaded. It is readable, and never
        // written.
        let bytes = unsafe { std::slice::from_raw_parts(start, length) };
        UnwindInfo { start: self.start, bytes, index: self.index }
    }
}

/// A range of addresses. `high` is exclusive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressRange {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

/// Returns the address range of the module that contains the tracker; empty before it is stored.
#[inline(always)]
pub(crate) fn own_range() -> AddressRange {
    // Relaxed: written once, before `main`, and published by the choice of an unwinder.
    AddressRange { low: OWN_LOW.load(Relaxed), high: OWN_HIGH.load(Relaxed) }
}

/// Returns the module of this code. The code is on this thread's stack, so it is not unloaded
/// meanwhile.
pub(crate) fn find(code: usize) -> Option<ModuleInfo> {
    // Acquire, with the Release of `publish`. The loads below are Relaxed for that reason.
    let count = PERMANENT_COUNT.load(Acquire).min(PERMANENT.len());
    let permanent = PERMANENT
        .iter()
        .take(count)
        .find(|place| place.low.load(Relaxed) <= code && code < place.high.load(Relaxed));
    if let Some(place) = permanent {
        let module = Module {
            low: place.low.load(Relaxed),
            high: place.high.load(Relaxed),
            start: place.start.load(Relaxed),
            end: place.end.load(Relaxed),
            index: place.index.load(Relaxed),
        };
        // SAFETY: a permanent module is never unloaded.
        let unwind_info = unsafe { module.unwind_info() };
        return Some(ModuleInfo { unwind_info, identity: Identity::Permanent });
    }
    find_unloadable(code)
}

/// Returns the fingerprint of the module of this code.
pub(crate) fn fingerprint(code: usize) -> Option<u64> {
    fingerprint_of(&find_object(code)?)
}

fn find_unloadable(code: usize) -> Option<ModuleInfo> {
    let object = find_object(code)?;
    let headers = headers(&object)?;
    let first = headers.iter().find(|header| header.p_type == libc::PT_LOAD)?;
    let bias = object.start.addr().wrapping_sub(first.p_vaddr as usize & !(sys::PAGE - 1));
    let module = Module::from_headers(bias, headers)?;
    // SAFETY: the module's code is on this thread's stack, so it is not unloaded meanwhile.
    let unwind_info = unsafe { module.unwind_info() };
    Some(ModuleInfo {
        unwind_info,
        identity: fingerprint_of(&object).map_or(Identity::Unknown, Identity::Fingerprint),
    })
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
    let fits = end.is_some_and(|end| end <= sys::PAGE);
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
        sys::build_id(unsafe { std::slice::from_raw_parts(notes, header.p_memsz as usize) })
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
    fn modules_loaded_with_the_program_are_permanent() {
        record_loaded(false);
        for function in [record_loaded as *const (), libc::getpid as *const ()] {
            let found = find(function.addr()).expect("it is loaded");
            assert_eq!(found.identity, Identity::Permanent);
            let UnwindInfo { start, bytes, index } = found.unwind_info;
            assert!(start <= index && index < start + bytes.len());
        }
        assert!(find(0x1000).is_none());
        // The end of a module is outside.
        let own = own_range();
        let index = |code| find(code).map(|found| found.unwind_info.index);
        assert!(index(own.low).is_some());
        assert_ne!(index(own.high), index(own.low));
    }

    #[test]
    fn a_module_that_may_be_unloaded_is_known_by_its_build_id() {
        record_loaded(false);
        if DL_FIND_OBJECT.load(Relaxed) == 0 {
            // An older C library.
            return;
        }
        let [code, same, other] =
            [libc::getpid as *const (), libc::getppid as *const (), record_loaded as *const ()]
                .map(|function| function.addr());
        let known = fingerprint(code).expect("the C library has a build id");
        assert_eq!(fingerprint(same), Some(known));
        assert_ne!(fingerprint(other), Some(known));
        assert_eq!(fingerprint(0x1000), None);

        let unloadable = find_unloadable(code).expect("it is loaded");
        assert_eq!(unloadable.identity, Identity::Fingerprint(known));
        let permanent = find(code).expect("it is loaded");
        let place = |info: UnwindInfo<'static>| (info.start, info.bytes.len(), info.index);
        assert_eq!(place(unloadable.unwind_info), place(permanent.unwind_info));
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
        let module =
            |start, end, index| Module { low: 0x1_1000, high: 0x1_5010, start, end, index };
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
            assert_eq!(Module::from_headers(0x1_0000, &headers), expected, "{address:x?}");
        }
        let without_segments = [index(0x3200)];
        assert_eq!(Module::from_headers(0x1_0000, &without_segments), None);
    }
}
