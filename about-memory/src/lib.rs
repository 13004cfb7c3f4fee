//! Shows memory reports, DMD dumps and recordings.
//!
//! This crate is the programs `about-memory` and `cargo-memreport`; as a library it serves the
//! workspace's own tests. A command reads its [`input`], computes a [`report`] and has it
//! [`render`]ed:
//!
//! ```text
//! args -> command -> input -> report
//!                 -> render -> report
//! ```
//!
//! * [`input`] opens report files, dumps, recordings and the sockets of running programs.
//! * `other_process` stops and reads other processes; `glibc_heap` finds the blocks of one.
//! * `inject` loads the tracker's library into a running program.
//! * [`report`] holds the values, without input and output: trees, differences, budgets,
//!   explanations.
//! * [`render`] writes them as text, JSON, Markdown and HTML.
//! * [`command`] has one file for each subcommand, with its flags.
//! * [`args`] puts the commands together to the command line.
//! * [`cargo`] is `cargo memreport`: it builds programs, and hands them to the commands.

#![cfg_attr(
    not(unix),
    expect(dead_code, unused_imports, reason = "helpers of the commands that only Unix has")
)]

pub mod error;
pub mod context;
pub mod report;
pub mod input;
mod other_process;
mod glibc_heap;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod inject;
pub mod render;
pub mod command;
pub mod args;
#[cfg(unix)]
pub mod cargo;
#[cfg(not(unix))]
#[path = "cargo/elsewhere.rs"]
pub mod cargo;

pub use args::Cli;
pub use cargo::CargoCli;
pub use context::{Context, Terminal, Words, start};
pub use error::{AnswerWriter, Failure};
pub use render::terminal_text::TerminalText;
