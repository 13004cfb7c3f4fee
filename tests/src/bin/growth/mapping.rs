//! A read-only memory mapping of a file, as databases have it.
#![expect(unsafe_code, reason = "maps a file")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// A file mapped for reading.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps the first bytes of a file, which must have as many.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        // SAFETY: the system chooses the address, so no other memory is affected.
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

    /// Returns the first byte of each page.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u8> {
        (0..self.bytes).step_by(4096).map(|at| {
            // SAFETY: within the mapping.
            let byte = unsafe { self.start.add(at) };
            // SAFETY: mapped for reading as long as `self` lives, from a file that does not change
            // meanwhile.
            unsafe { byte.read() }
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no pointer into it remains.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
