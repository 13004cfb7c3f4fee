//! Frames of a stack: whose code they are, how they are printed, and which type they allocated.

mod tracker;
mod source_file;
mod allocation;
mod parts;
mod trim;
mod frame_format;
mod block_type;
mod crates;
mod site;
mod reporter;

pub use block_type::BlockType;
pub use crates::Crates;
pub use frame_format::{shorten, stack_as_read};
pub use site::Site;

pub(crate) use allocation::is_allocation;
pub(crate) use frame_format::Style;
pub(crate) use parts::Parts;
pub(crate) use reporter::reporter;
pub(crate) use site::Sites;
pub(crate) use trim::{without_allocator, without_library};
