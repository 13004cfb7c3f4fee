//! The source of a program: its packages, the types and statics in its files, and changes to them.

pub(crate) mod workspace;
pub(crate) mod index;
pub(crate) mod items;
pub(crate) mod variables;
pub(crate) mod manifest;
pub(crate) mod edit;
pub(crate) mod diff;
pub(crate) mod copy;
pub(crate) mod check;
