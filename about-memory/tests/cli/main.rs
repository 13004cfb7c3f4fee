//! Tests of the command line: the program is run on files, and its output is compared.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod annotate;
mod bad_input;
mod beyond;
mod census;
mod check;
mod dumps;
mod exports;
mod folder;
mod html;
mod kinds;
mod moments;
mod names;
mod processes;
mod text;
mod tree;
#[cfg(windows)]
mod windows;
