//! The places in loaded modules from which functions of other modules are called.
//!
//! The linker writes the address of an imported function into the calling module. These places are
//! overwritten. Addresses that the program has taken before and keeps elsewhere stay as they are.
#![expect(
    unsafe_code,
    reason = "asks the dynamic linker, and reads its tables where they are loaded"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses have 64 bits on all supported systems"
)]

use std::ffi::{CStr, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;

use libc::{Elf64_Rela, Elf64_Sym, dl_phdr_info};

/// A function to replace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) name: &'static CStr,
    /// The address that programs call now.
    pub(crate) former: usize,
    /// The address to call instead.
    pub(crate) function: usize,
}

/// Tags of the dynamic section: see elf(5).
const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_JMPREL: u64 = 23;

/// Types of relocations: the place of a call, an address in the table of addresses, an address in
/// data.
#[cfg(target_arch = "x86_64")]
mod types {
    pub(super) const CALL: u32 = 7;
    pub(super) const TABLE: u32 = 6;
    pub(super) const DATA: u32 = 1;
}
#[cfg(target_arch = "aarch64")]
mod types {
    pub(super) const CALL: u32 = 1026;
    pub(super) const TABLE: u32 = 1025;
    pub(super) const DATA: u32 = 257;
}
use types::{CALL, DATA, TABLE};

/// An entry of the dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: u64,
    value: u64,
}

/// Returns the address by which programs call this function of the C library; `None` if it has no
/// such function.
///
/// # Errors
///
/// If programs call another library's `malloc`: its blocks must not be mixed with the C library's.
pub(crate) fn of_c_library(name: &CStr) -> Result<Option<usize>, String> {
    // SAFETY: the name is a C string.
    let called = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if called.is_null() {
        return Ok(None);
    }
    let mut found = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: a valid place for the answer.
    let is_found = unsafe { libc::dladdr(called, &raw mut found) } != 0;
    let mut c_library = found;
    // SAFETY: as above.
    let is_known = unsafe { libc::dladdr(libc::getpid as *const c_void, &raw mut c_library) } != 0;
    if is_found && is_known && found.dli_fbase == c_library.dli_fbase {
        return Ok(Some(called.addr()));
    }
    let mut own = found;
    // SAFETY: as above.
    let is_own_known = unsafe { libc::dladdr(of_c_library as *const c_void, &raw mut own) } != 0;
    if is_own_known && found.dli_fbase == own.dli_fbase {
        // Nothing but this library has it.
        return Ok(None);
    }
    let file = if found.dli_fname.is_null() {
        "an unknown file".into()
    } else {
        // SAFETY: the linker's own string, of a module that is loaded.
        unsafe { CStr::from_ptr(found.dli_fname) }.to_string_lossy()
    };
    Err(format!("the program calls the {} of {file}, not glibc's", name.to_string_lossy()))
}

/// Returns how many modules have been loaded so far.
pub(crate) fn loads() -> u64 {
    unsafe extern "C" fn visit(info: *mut dl_phdr_info, _: usize, loads: *mut c_void) -> c_int {
        // SAFETY: the linker passes a valid description.
        let adds = unsafe { (*info).dlpi_adds };
        // SAFETY: the number below, which nobody else uses during the call.
        unsafe { loads.cast::<u64>().write(adds) };
        1
    }
    let mut loads = 0_u64;
    // SAFETY: `visit` keeps no reference to the number.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut loads).cast()) };
    loads
}

/// Overwrites the places that lead to one of these functions, in all modules but this one.
///
/// # Errors
///
/// If the process cannot write its own memory through `/proc`.
pub(crate) fn replace(replacements: &[Replacement]) -> io::Result<()> {
    // Writes through this file fail where the memory is gone, and pass a page's protection. Places
    // are made read-only once the linker has written them.
    let memory = OpenOptions::new().write(true).open("/proc/self/mem")?;
    let mut task = Task { replacements, memory, failed: None };
    // SAFETY: `visit` keeps no reference to the value. The linker's lock is held meanwhile, so that
    // no module is unloaded.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut task).cast()) };
    task.failed.map_or(Ok(()), Err)
}

struct Task<'a> {
    replacements: &'a [Replacement],
    memory: File,
    failed: Option<io::Error>,
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _: usize, task: *mut c_void) -> c_int {
    // SAFETY: the linker passes a valid description.
    let info = unsafe { &*info };
    // SAFETY: the value of `replace`, which is not used elsewhere during the call.
    let task = unsafe { &mut *task.cast::<Task<'_>>() };
    // SAFETY: the linker's description is of a loaded module.
    if let Some(module) = unsafe { Module::of(info) } {
        // SAFETY: as above.
        unsafe { module.replace(task) };
    }
    0
}

/// The tables of a loaded module.
struct Module {
    bias: u64,
    low: u64,
    high: u64,
    symbols: u64,
    names: u64,
    names_size: u64,
    calls: (u64, u64),
    others: (u64, u64),
}

impl Module {
    /// Finds the tables. Returns `None` for this library, and for modules without tables.
    ///
    /// # Safety
    ///
    /// The description is of a loaded module, which is not unloaded meanwhile.
    unsafe fn of(info: &dl_phdr_info) -> Option<Module> {
        let bias = info.dlpi_addr;
        let count = usize::from(info.dlpi_phnum);
        // SAFETY: the description has this many headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, count) };
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let low = loaded().map(|header| bias.wrapping_add(header.p_vaddr)).min()?;
        let end = |header: &libc::Elf64_Phdr| bias.wrapping_add(header.p_vaddr + header.p_memsz);
        let high = loaded().map(end).max()?;
        if (low..high).contains(&(replace as *const () as u64)) {
            return None;
        }
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let mut module = Module {
            bias,
            low,
            high,
            symbols: 0,
            names: 0,
            names_size: 0,
            calls: (0, 0),
            others: (0, 0),
        };
        let mut entry = bias.wrapping_add(dynamic.p_vaddr);
        loop {
            // SAFETY: the section is in the module, and ends with `DT_NULL`.
            let Dynamic { tag, value } = unsafe { read(entry) };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => module.symbols = module.address(value),
                DT_STRTAB => module.names = module.address(value),
                DT_STRSZ => module.names_size = value,
                DT_JMPREL => module.calls.0 = module.address(value),
                DT_PLTRELSZ => module.calls.1 = value,
                DT_RELA => module.others.0 = module.address(value),
                DT_RELASZ => module.others.1 = value,
                _ => {}
            }
            entry += size_of::<Dynamic>() as u64;
        }
        (module.symbols != 0 && module.names != 0).then_some(module)
    }

    /// Returns the address of a table. The linker has added the bias already, but for the kernel's
    /// module.
    fn address(&self, value: u64) -> u64 {
        if value < self.bias { self.bias.wrapping_add(value) } else { value }
    }

    /// Overwrites the places of this module.
    ///
    /// # Safety
    ///
    /// The module is loaded, and not unloaded meanwhile.
    unsafe fn replace(&self, task: &mut Task<'_>) {
        for (table, size) in [self.calls, self.others] {
            for index in 0..size / size_of::<Elf64_Rela>() as u64 {
                // SAFETY: the table has this many entries.
                let entry: Elf64_Rela =
                    unsafe { read(table + index * size_of::<Elf64_Rela>() as u64) };
                // SAFETY: an entry of this module.
                let Some((place, function)) = (unsafe { self.replacement(&entry, task) }) else {
                    continue;
                };
                let written = task.memory.write_all_at(&function.to_ne_bytes(), place);
                task.failed = task.failed.take().or(written.err());
            }
        }
    }

    /// Returns the place that the entry describes, and the address to write there; `None` if it
    /// leads elsewhere.
    ///
    /// # Safety
    ///
    /// The entry is of this module, which is loaded.
    unsafe fn replacement(&self, entry: &Elf64_Rela, task: &Task<'_>) -> Option<(u64, usize)> {
        let [number, kind] = [(entry.r_info >> 32) as u32, entry.r_info as u32];
        if !matches!(kind, CALL | TABLE | DATA) || number == 0 || entry.r_addend != 0 {
            return None;
        }
        let symbol = self.symbols + u64::from(number) * size_of::<Elf64_Sym>() as u64;
        // SAFETY: the number is of the module's table of symbols.
        let symbol: Elf64_Sym = unsafe { read(symbol) };
        // A module's own function, or a name beyond the table.
        if symbol.st_shndx != 0 && kind == CALL || u64::from(symbol.st_name) >= self.names_size {
            return None;
        }
        let name = ptr::with_exposed_provenance((self.names + u64::from(symbol.st_name)) as usize);
        // SAFETY: a C string in the module's table of names.
        let name = unsafe { CStr::from_ptr(name) };
        let known = task.replacements.iter().find(|replacement| replacement.name == name)?;
        let place = self.bias.wrapping_add(entry.r_offset);
        // SAFETY: the linker has written an address there, or will do so.
        let now: u64 = unsafe { read(place) };
        // Before the first call, the place of a call leads to the module's own code, which asks the
        // linker.
        let is_unbound = kind == CALL && (self.low..self.high).contains(&now);
        let is_bound = now == known.former as u64;
        (is_bound || is_unbound).then_some((place, known.function))
    }
}

/// Reads a value of a loaded module.
///
/// # Safety
///
/// The address is of such a value. Other threads may overwrite words, at once.
unsafe fn read<T: Copy>(address: u64) -> T {
    let place = ptr::with_exposed_provenance::<T>(address as usize);
    // SAFETY: the caller's contract.
    unsafe { place.read_volatile() }
}
