//! A file in memory, as a database maps it.
#![expect(unsafe_code, reason = "maps a file")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// A file that is mapped to be read.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps the first bytes of a file that has so many.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        // SAFETY: the system chooses where, so no memory of anybody's is touched.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Mapping { start, bytes })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The first byte of each page.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u8> {
        (0..self.bytes).step_by(4096).map(|at| {
            // SAFETY: within the mapping.
            let byte = unsafe { self.start.add(at) };
            // SAFETY: mapped to be read for as long as `self` lives, from a file that nobody writes meanwhile.
            unsafe { byte.read() }
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody has a pointer into it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
