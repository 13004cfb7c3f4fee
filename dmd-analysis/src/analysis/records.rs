//! Records: the blocks of a dump that share their stacks, grouped, compared and printed as dmd.py
//! does.

pub(crate) mod totals;
pub(crate) mod class;
pub(crate) mod stacks;
mod addresses;
pub(crate) mod record;
pub(crate) mod digest;
pub(crate) mod diff;
pub(crate) mod order;
pub(crate) mod text;

pub(crate) use addresses::AddressPlace;
pub use addresses::Addresses;
pub use class::{Class, UNTRACKED};
pub use diff::{DifferentModes, diff};
pub use digest::{Digest, Section, digest};
pub use order::{Filter, SortBy};
pub use record::{Record, SizeCount, Sizes};
pub use stacks::{Grouping, ListId, StackId, Stacks};
pub use text::{TextOptions, write_text};
pub use totals::Totals;

pub(crate) use class::{class, mode};
