//! Defines the sums of one measurement: the whole value and its named parts.

use alloc::string::String;
use alloc::vec::Vec;

/// The outcome of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Heap bytes as the allocator counts them, so with what it rounded up; parts included.
    pub bytes: usize,
    /// Heap blocks that were counted one by one; those behind [`computed`](Self::computed) are not among them.
    pub blocks: usize,
    /// How many of the `bytes` come from a formula, because the block could not be found.
    pub computed: usize,
    /// Values that were locked by somebody else, and so left out.
    pub busy: usize,
    /// What belongs to parts of their own, by the derive's `part`. The remaining bytes belong to the value itself.
    pub parts: Vec<Part>,
}

impl Measured {
    /// What the part of this name owns, in bytes, with the parts below it; 0 if there is none.
    #[must_use]
    pub fn part(&self, name: &str) -> usize {
        let is_it = |part: &&Part| {
            part.path
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.parts.iter().filter(is_it).map(|part| part.bytes).sum()
    }
}

/// A share of a measured value that is to be reported under a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its path below the value's, as `words` or `words/slots`.
    pub path: String,
    /// Heap bytes of this part alone, parts of it not included.
    pub bytes: usize,
    /// One sentence about it.
    pub description: &'static str,
}
