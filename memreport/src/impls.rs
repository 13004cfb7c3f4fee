//! What std's types own, a file for each family.
//!
//! How exact each is, is said at its impl: *exact* wherever sizes can be asked, *exact with the tracker* (a formula without it),
//! or a *lower bound*.

mod plain;
mod composed;
mod text;
mod sequence;
mod boxed;
mod cells;
mod locks;
mod shared;
mod deque;
mod list;
mod hash;
mod btree;
