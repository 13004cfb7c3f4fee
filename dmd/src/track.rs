//! In the measured process: from the allocator's hooks to a dump.

pub(crate) mod options;
pub(crate) mod sys;
pub(crate) mod signals;
pub(crate) mod pages;
pub(crate) mod copies;
pub(crate) mod entry;
pub(crate) mod segments;
pub(crate) mod records;
pub(crate) mod blocks;
pub(crate) mod interner;
pub(crate) mod thread;
pub(crate) mod walk;
pub(crate) mod sites;
pub(crate) mod journal;
pub(crate) mod hooks;
pub(crate) mod marks;
pub(crate) mod collection;
pub(crate) mod start;
