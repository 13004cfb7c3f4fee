//! Shows memory reports to people, as Firefox's about:memory does: text, differences, budgets; and the dumps of DMD.

pub mod cli;
pub mod run;
pub mod dmd;
pub mod symbolicate;
pub mod coverage;
pub mod symbolised;
pub mod export;
pub mod heap;
pub mod show;
pub mod check;
pub mod open;
pub mod notes;
pub mod filter;
pub mod diff;
pub mod forest;
pub mod refusal;
pub mod amount;
pub mod tree;
pub mod order;
pub mod page;
pub mod numbers;
pub mod budget;
pub mod view;
pub mod paint;
