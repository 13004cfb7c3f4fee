//! Options of the texts about a dump: how many entries, how many frames, how wide.

use crate::symbols::Members;

/// The options by which allocation sites are distinguished and printed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainOptions {
    /// The number of places to print of each class.
    pub top: usize,
    /// The number of frames by which sites are distinguished, from the innermost.
    pub max_frames: usize,
    /// The columns of the line of a frame; 0 for any number.
    pub width: usize,
    /// The program's directory, which its paths are printed without.
    pub root: Option<String>,
    /// The offsets of the fields of [`pointing_types`](super::pointing_types), if they were looked
    /// up.
    pub members: Members,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self { top: 5, max_frames: 8, width: 0, root: None, members: Members::new() }
    }
}
