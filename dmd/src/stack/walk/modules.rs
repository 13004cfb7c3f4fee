//! Which module a piece of code belongs to, and where its unwind information is: asked of the dynamic linker without a lock.
#![expect(
    unsafe_code,
    reason = "calls the dynamic linker, and reads modules where they are loaded"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses have 64 bits on all systems that are written for"
)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::unwind_info::UnwindInfo;
use crate::mem::sys;

/// What is known of the code's module.
pub(crate) struct ModuleInfo {
    pub(crate) unwind_info: UnwindInfo<'static>,
    /// Of a module that may go: a number that no other module in its place has, so that what was learnt of it is not
    /// believed of another.
    pub(crate) identity: Identity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The module stays as long as the process.
    Permanent,
    /// It may go, and this tells it from others.
    Fingerprint(u64),
    /// It may go, and nothing tells it from others.
    Unknown,
}

/// A module that stays: the addresses that it covers, the segment with its unwind information, and the index in there.
struct PermanentModule {
    low: AtomicUsize,
    high: AtomicUsize,
    start: AtomicUsize,
    end: AtomicUsize,
    index: AtomicUsize,
}

/// The modules that were loaded with the program: the linker keeps those until the process ends. Read by hooks.
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

/// The addresses of the module that the tracker is part of.
static OWN_LOW: AtomicUsize = AtomicUsize::new(0);
static OWN_HIGH: AtomicUsize = AtomicUsize::new(0);

/// The linker's `_dl_find_object`, if it has one (glibc from 2.35 on); 0 is none.
static DL_FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// The linker's answer; the layout is part of its interface.
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

/// Remembers the modules that are loaded with the program. Takes the linker's lock: to be called once, before `main`.
pub(crate) fn record_loaded() {
    // SAFETY: a string constant, and a search that has no side effects.
    let find = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    DL_FIND_OBJECT.store(find.expose_provenance(), Relaxed);
    let mut loaded = Loaded { count: 0, own_is_program: false };
    // SAFETY: `visit` uses the value only during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut loaded).cast()) };
}

struct Loaded {
    count: usize,
    /// Whether the tracker is part of the program, not of a library that somebody loads later.
    own_is_program: bool,
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    loaded: *mut c_void,
) -> c_int {
    // SAFETY: the linker hands in a valid description.
    let info = unsafe { &*info };
    // SAFETY: the value given below, which nobody else uses meanwhile.
    let loaded = unsafe { &mut *loaded.cast::<Loaded>() };
    // SAFETY: the description's own table.
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
    // A library's own initialiser may run while others are there that will go: only what must stay is known to.
    let is_c_library = holds(libc::getpid as *const () as usize);
    if is_program || is_own || is_c_library || loaded.own_is_program {
        module.publish();
    }
    0
}

/// Where a module's parts are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Module {
    low: usize,
    high: usize,
    start: usize,
    end: usize,
    index: usize,
}

impl Module {
    /// `None` if it has no unwind information.
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
        // Release, with the Acquire of `find`: the place is filled in.
        PERMANENT_COUNT.store(count + 1, Release);
    }

    /// # Safety
    ///
    /// The module is loaded for as long as the answer is used.
    unsafe fn unwind_info(self) -> UnwindInfo<'static> {
        let (start, length) = (ptr::with_exposed_provenance(self.start), self.end - self.start);
        // SAFETY: a readable segment of a loaded module, which nobody writes to.
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

/// The addresses of the module that the tracker is part of; nothing before they are known.
#[inline(always)]
pub(crate) fn own_range() -> AddressRange {
    AddressRange { low: OWN_LOW.load(Relaxed), high: OWN_HIGH.load(Relaxed) }
}

/// The module of this code, which is on this thread's stack and so cannot go meanwhile.
pub(crate) fn find(code: usize) -> Option<ModuleInfo> {
    // Acquire, with the Release of `publish`.
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
        // SAFETY: it stays until the process ends.
        return Some(ModuleInfo {
            unwind_info: unsafe { module.unwind_info() },
            identity: Identity::Permanent,
        });
    }
    find_unloadable(code)
}

/// The fingerprint of the module of this code.
pub(crate) fn fingerprint(code: usize) -> Option<u64> {
    fingerprint_of(&find_object(code)?)
}

fn find_unloadable(code: usize) -> Option<ModuleInfo> {
    let object = find_object(code)?;
    let headers = headers(&object)?;
    let first = headers.iter().find(|header| header.p_type == libc::PT_LOAD)?;
    let bias = object.start.addr().wrapping_sub(first.p_vaddr as usize & !(sys::PAGE - 1));
    let module = Module::from_headers(bias, headers)?;
    // SAFETY: its code is on this thread's stack.
    let unwind_info = unsafe { module.unwind_info() };
    Some(ModuleInfo {
        unwind_info,
        identity: fingerprint_of(&object).map_or(Identity::Unknown, Identity::Fingerprint),
    })
}

fn find_object(code: usize) -> Option<Object> {
    let find = ptr::with_exposed_provenance::<()>(DL_FIND_OBJECT.load(Relaxed));
    // SAFETY: zero, which is none, or the function of that name, whose type this is.
    let find: Option<FindObject> = unsafe { std::mem::transmute(find) };
    let none = ptr::null_mut();
    let mut object =
        Object { flags: 0, start: none, end: none, link_map: none, index: none, reserved: [0; 7] };
    // SAFETY: any address may be asked about, and the answer has room.
    let failed = unsafe { find?(ptr::without_provenance_mut(code), &raw mut object) };
    (failed == 0).then_some(object)
}

/// What the first page of a module says of its parts. Linkers put it there.
fn headers(object: &Object) -> Option<&'static [libc::Elf64_Phdr]> {
    let first = object.start.cast::<libc::Elf64_Ehdr>();
    // SAFETY: the module is loaded, and begins with a page that can be read; a header is smaller.
    let header = unsafe { &*first };
    let table = usize::try_from(header.e_phoff).ok()?;
    let count = usize::from(header.e_phnum);
    let end = table.checked_add(count * size_of::<libc::Elf64_Phdr>());
    let fits = end.is_some_and(|end| end <= sys::PAGE);
    if !header.e_ident.starts_with(b"\x7fELF") || !fits || !table.is_multiple_of(8) {
        return None;
    }
    // SAFETY: inside the first page.
    let table = unsafe { object.start.cast::<u8>().add(table) };
    // SAFETY: so many headers are in the first page; the table is aligned.
    Some(unsafe { std::slice::from_raw_parts(table.cast(), count) })
}

/// Where the module is, and its build id: another one in the same place has another.
fn fingerprint_of(object: &Object) -> Option<u64> {
    let in_first_page = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_NOTE
            && header.p_offset.checked_add(header.p_memsz).is_some_and(|end| end <= 4096)
    };
    let build_id = headers(object)?.iter().filter(in_first_page).find_map(|header| {
        // SAFETY: inside the first page.
        let notes = unsafe { object.start.cast::<u8>().add(header.p_offset as usize) };
        // SAFETY: as above.
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
    use super::*;

    #[test]
    fn what_is_loaded_with_the_program_stays() {
        record_loaded();
        for function in [record_loaded as *const (), libc::getpid as *const ()] {
            let found = find(function.addr()).expect("it is loaded");
            assert_eq!(found.identity, Identity::Permanent);
            let UnwindInfo { start, bytes, index } = found.unwind_info;
            assert!(start <= index && index < start + bytes.len());
        }
        assert!(find(0x1000).is_none());
    }
}
