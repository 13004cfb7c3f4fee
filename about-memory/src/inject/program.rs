//! Finds the functions of a running program, and refuses programs that cannot be tracked.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::error::InjectError;
use crate::other_process::{
    Functions, Mapping, State, exported, instead_of_glibc, is_c_library, mappings, state,
};

/// A running program: the addresses of functions, and of what the C library and the linker have.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) pid: u32,
    pub(super) dlopen: u64,
    pub(super) dlsym: u64,
    pub(super) dlerror: u64,
    pub(super) mmap: u64,
    pub(super) mprotect: u64,
    pub(super) munmap: u64,
    /// The functions that a borrowed thread needs.
    pub(super) functions: Functions,
    /// The addresses of the C library and the linker, with their data.
    system: Vec<Range<u64>>,
}

/// The size of an arena of glibc's, at whose start its lock is, and of the page with the lock.
const ARENA: u64 = 64 << 20;
const PAGE: u64 = 4096;

impl Program {
    /// Examines the process.
    ///
    /// # Errors
    ///
    /// It is another user's, traced, stopped or filtered, or has no glibc.
    pub(super) fn of(pid: u32) -> Result<Self, InjectError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(InjectError::Architecture);
        }
        let State { is_stopped, is_filtered } = state(pid)?;
        if is_filtered {
            return Err(InjectError::Filtered(pid));
        }
        if is_stopped {
            return Err(InjectError::Stopped(pid));
        }
        let mappings = mappings(pid)?;
        // Another C library has a malloc of its own, too.
        check_glibc(pid, &mappings)?;
        let mut symbols = BTreeMap::new();
        for module in modules(&mappings) {
            let is_c_library = is_c_library(module.file_name());
            let Some(found) = exported(pid, module) else { continue };
            if is_c_library {
                symbols.extend(found);
            } else if found.contains_key("malloc") && !found.contains_key(super::ENTRY) {
                return Err(InjectError::OtherAllocator(pid, PathBuf::from(&module.path)));
            }
        }
        let of = |name: &str| {
            let found = symbols.get(name).copied();
            found.ok_or_else(|| InjectError::NoLoader(pid, format!("its C library has no {name}")))
        };
        Ok(Program {
            pid,
            dlopen: of("dlopen")?,
            dlsym: of("dlsym")?,
            dlerror: of("dlerror")?,
            mmap: of("mmap")?,
            mprotect: of("mprotect")?,
            munmap: of("munmap")?,
            functions: Functions::of(pid, &mappings).ok_or_else(|| {
                let what = "the code after a signal handler was not found in its C library";
                InjectError::NoLoader(pid, what.to_owned())
            })?,
            system: system(&mappings),
        })
    }

    /// Returns whether this code is the C library's, the linker's or the kernel's.
    pub(super) fn is_system_code(&self, address: u64) -> bool {
        self.system.iter().any(|range| range.contains(&address))
    }

    /// Returns whether a lock at this address may be the allocator's or the linker's.
    pub(super) fn is_system_data(&self, address: u64) -> bool {
        self.is_system_code(address) || address % ARENA < PAGE
    }
}

fn check_glibc(pid: u32, mappings: &[Mapping]) -> Result<(), InjectError> {
    let has = |start| mappings.iter().any(|mapping| mapping.file_name().starts_with(start));
    let what = match () {
        () if has("libc.so.6") => return Ok(()),
        () if has("ld-linux") => "its libraries are not loaded yet; try again in a moment",
        () => instead_of_glibc(pid, mappings),
    };
    Err(InjectError::NoLoader(pid, what.to_owned()))
}

/// Returns the first mapping of each file, at which the module is loaded.
fn modules(mappings: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    mappings.iter().filter(|mapping| mapping.offset == 0 && mapping.inode != 0)
}

/// Returns the addresses of the C library, the linker and the kernel's own pages, with the pages of
/// zeros that follow their data.
fn system(mappings: &[Mapping]) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for mapping in mappings {
        let follows = found.last().is_some_and(|last| last.end == mapping.range.start);
        if is_c_library(mapping.file_name())
            || mapping.path.starts_with("[v")
            || (mapping.path.is_empty() && follows)
        {
            found.push(mapping.range.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::other_process::{ProcessError, parse};

    const MAPS: &str = "\
555555554000-555555556000 r--p 00000000 fe:00 11 /usr/bin/some program
7ffff7d00000-7ffff7d20000 r--p 00000000 fe:00 22 /usr/lib/x86_64-linux-gnu/libc.so.6
7ffff7d20000-7ffff7e00000 rw-p 00020000 fe:00 22 /usr/lib/x86_64-linux-gnu/libc.so.6
7ffff7e00000-7ffff7e0d000 rw-p 00000000 00:00 0 
7ffff7f00000-7ffff7f01000 rw-p 00000000 00:00 0 
7ffff7fc0000-7ffff7fc2000 r-xp 00000000 00:00 0 [vdso]";

    #[test]
    fn the_c_library_has_its_zeros_too() {
        let mappings: Vec<_> = MAPS.lines().filter_map(parse).collect();
        assert_eq!(mappings.len(), 6);
        let program = Program {
            pid: 1,
            dlopen: 0,
            dlsym: 0,
            dlerror: 0,
            mmap: 0,
            mprotect: 0,
            munmap: 0,
            functions: Functions::default(),
            system: system(&mappings),
        };
        assert!(program.is_system_code(0x7fff_f7d0_1000));
        assert!(program.is_system_code(0x7fff_f7e0_0010), "pages of zeros that follow");
        assert!(program.is_system_code(0x7fff_f7fc_0010), "the kernel's functions");
        assert!(!program.is_system_code(0x7fff_f7f0_0010), "pages of their own");
        assert!(!program.is_system_code(0x5555_5555_4000));
        assert!(program.is_system_data(0x7fff_f000_0018), "the lock of an arena");
        assert!(!program.is_system_data(0x7fff_f000_2018));
    }

    #[test]
    fn this_program_has_the_functions_but_may_not_trace_itself() {
        let own = std::process::id();
        let found = Program::of(own).expect("it has glibc");
        assert_ne!(found.dlopen, found.dlsym);
        assert!(found.is_system_code(found.mmap));
        assert!(matches!(
            Program::of(u32::MAX),
            Err(InjectError::Process(ProcessError::NotThere(_)))
        ));
    }
}
