//! Defines the sums of one measurement: the whole value and its named parts.

use alloc::string::String;
use alloc::vec::Vec;

/// The result of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// Usable heap bytes, with the allocator's rounding and with all parts.
    pub bytes: usize,
    /// Heap blocks that were counted one by one. Blocks behind [`computed`](Self::computed) bytes
    /// are not included.
    pub blocks: usize,
    /// The part of `bytes` that comes from a formula, because the blocks could not be found.
    pub computed: usize,
    /// The number of values that were skipped because another thread had them locked.
    pub busy: usize,
    /// The number of values, by the derive's `reachable`, whose blocks only a snapshot under DMD
    /// finds. None of their bytes is in `bytes`.
    pub inferred: usize,
    /// The named parts, by the derive's `part`. The remaining bytes belong to the value itself.
    pub parts: Vec<Part>,
}

impl Measured {
    /// Returns the bytes of the part with this name and of the parts below it, or 0 if there is
    /// none.
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

/// A part of a measured value that is reported under a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// The path below the value's, such as `words` or `words/slots`.
    pub path: String,
    /// Heap bytes of this part alone, without the parts below it.
    pub bytes: usize,
    /// One sentence that describes the part.
    pub description: &'static str,
}
