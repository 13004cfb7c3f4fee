//! The blocks of a scan and their words.

pub(crate) mod block_words;
pub(crate) mod contents;
pub(crate) mod copied_words;
pub(crate) mod kept;
pub(crate) mod scanned;
