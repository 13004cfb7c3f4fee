//! In the measured process: from the allocator's hooks to a dump.
//!
//! Under loom only the tables exist that threads share, and the models of them.
#![cfg_attr(loom, expect(dead_code, reason = "what uses the tables is not there"))]

pub(crate) mod sync;
#[cfg(not(loom))]
pub(crate) mod options;
pub(crate) mod rates;
pub(crate) mod sample;
#[cfg(not(loom))]
pub(crate) mod plan;
pub(crate) mod sys;
#[cfg(not(loom))]
pub(crate) mod signals;
pub(crate) mod pages;
pub(crate) mod copies;
pub(crate) mod entry;
pub(crate) mod segments;
pub(crate) mod records;
pub(crate) mod blocks;
pub(crate) mod interner;
#[cfg(not(loom))]
pub(crate) mod thread;
#[cfg(not(loom))]
pub(crate) mod walk;
#[cfg(not(loom))]
pub(crate) mod memo;
#[cfg(not(loom))]
pub(crate) mod sites;
#[cfg(not(loom))]
pub(crate) mod dead;
#[cfg(not(loom))]
pub(crate) mod journal;
pub(crate) mod ring;
#[cfg(not(loom))]
pub(crate) mod events;
#[cfg(not(loom))]
pub(crate) mod observers;
#[cfg(not(loom))]
pub(crate) mod hooks;
#[cfg(not(loom))]
pub(crate) mod numbers;
#[cfg(not(loom))]
pub(crate) mod radix;
#[cfg(not(loom))]
pub(crate) mod claimants;
#[cfg(not(loom))]
pub(crate) mod holders;
#[cfg(not(loom))]
mod packed;
#[cfg(not(loom))]
pub(crate) mod marks;
#[cfg(not(loom))]
pub(crate) mod age;
#[cfg(not(loom))]
pub(crate) mod books;
#[cfg(not(loom))]
pub(crate) mod scan;
#[cfg(not(loom))]
pub(crate) mod collection;
#[cfg(not(loom))]
pub(crate) mod start;
#[cfg(all(test, loom))]
mod models;
