//! The bounds of a stack, and the name of a thread.

/// The address range of a stack. `high` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackBounds {
    pub(crate) low: usize,
    pub(crate) high: usize,
}

impl StackBounds {
    /// Returns whether fewer than `room` bytes of the stack are left below this stack pointer.
    /// Returns `false` for pointers outside the stack.
    #[inline(always)]
    pub(crate) fn is_near_end(self, stack_pointer: usize, room: usize) -> bool {
        stack_pointer.wrapping_sub(self.low) < room
    }
}

/// The part of a thread's stack that it uses, and what lies behind: the thread-local storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedStack {
    /// The kernel's number of the thread.
    pub(crate) thread: u32,
    pub(crate) bounds: StackBounds,
}

/// The used stacks of a process.
#[derive(Debug, Default)]
pub(crate) struct UsedStacks {
    pub(crate) known: Vec<UsedStack>,
    /// The mappings of the process.
    pub(crate) mappings: Vec<StackBounds>,
    /// The kernel's numbers of threads whose stack pointers are not known, since they run.
    pub(crate) unknown: Vec<u32>,
}

impl UsedStacks {
    /// Returns the mapping that contains an address.
    pub(crate) fn around(&self, address: usize) -> Option<StackBounds> {
        let contains = |mapping: &&StackBounds| (mapping.low..mapping.high).contains(&address);
        self.mappings.iter().find(contains).copied()
    }
}

/// The longest name of a thread, with the zero at its end: 16 bytes on Linux, 64 on macOS.
pub(super) const MAX_NAME: usize = 64;

/// The name of a thread: bytes up to the first zero.
pub(crate) struct ThreadName(pub(super) [u8; MAX_NAME]);

impl ThreadName {
    pub(crate) fn bytes(&self) -> &[u8] {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(0);
        &self.0[..length]
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::mem::sys::{is_thread, own_thread_name, stack_bounds, thread_id, thread_name};

    #[test]
    fn a_name_ends_at_its_first_zero() {
        let name = |text: &[u8]| {
            let mut bytes = [0; MAX_NAME];
            bytes[..text.len()].copy_from_slice(text);
            ThreadName(bytes).bytes().to_vec()
        };
        assert_eq!(name(b"worker\0rest"), b"worker");
        assert_eq!(name(b""), b"");
        // The systems end names with a zero. Without one, the length is unknown.
        assert_eq!(name(&[b'a'; MAX_NAME]), b"");
    }

    #[test]
    fn a_thread_exists_until_it_ends() {
        let name = "a-thread-name";
        let (named, ended) = thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                let own = thread_id();
                assert!(own != 0 && is_thread(own));
                assert_eq!(thread_name(own).as_deref(), Some(name));
                (own_thread_name().bytes().to_vec(), own)
            })
            .map(|thread| thread.join().expect("it does not panic"))
            .expect("a thread");
        assert_eq!(named, name.as_bytes());
        // The kernel may take a moment to remove a thread that was joined.
        for _ in 0..10_000 {
            if !is_thread(ended) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!is_thread(ended));
        assert_eq!(thread_name(ended), None);
    }

    #[test]
    fn a_thread_lies_on_its_stack() {
        let check = || {
            let local = 0_u8;
            let (local, bounds) = ((&raw const local).addr(), stack_bounds().unwrap());
            assert!(bounds.low <= local && local < bounds.high, "{bounds:x?}");
            assert!((64 << 10..=1 << 30).contains(&(bounds.high - bounds.low)), "{bounds:x?}");
        };
        thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
    }
}
