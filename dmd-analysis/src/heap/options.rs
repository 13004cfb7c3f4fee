//! Options for the heap of a dump.

use std::time::SystemTime;

use crate::analysis::Class;

/// Options for the heap of a dump.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapOptions {
    /// The elements that stacks consist of.
    pub stacks: StackKind,
    /// The functions that stacks have.
    pub frames: Frames,
    /// The only class of blocks to keep; all if `None`.
    pub only: Option<Class>,
    /// The time of the dump, for formats that contain one. Dumps do not contain it.
    pub taken: Option<SystemTime>,
    /// True if [`Heap::groups`](super::Heap::groups) are apart by age. Formats of viewers have no
    /// ages, so their rows stay together by default.
    pub ages: bool,
    /// True if [`Heap::groups`](super::Heap::groups) are apart by span, where scopes are linked to
    /// spans of traces.
    pub spans: bool,
}

/// The frames that stacks have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frames {
    /// All but the innermost ones of the allocator and of the tracker.
    #[default]
    All,
    /// Frames of the program and of the crates it uses, without the standard library and the frames
    /// outside `main`.
    Own,
}

/// The elements that stacks consist of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackKind {
    /// The functions that were called.
    #[default]
    Native,
    /// The scopes of the program, which Chrome calls a pseudo stack.
    Scopes,
    /// The functions, below the scopes that they were called in.
    ScopesThenNative,
}
