//! Limits on the sizes of files and folders.

pub(super) mod folders;
pub(super) mod sizes;
