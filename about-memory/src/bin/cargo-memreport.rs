//! Runs `cargo memreport`.

use about_memory::{CargoCli, start};
use std::process::ExitCode;

fn main() -> ExitCode {
    start("cargo memreport", CargoCli::parse_words(std::env::args_os()))
}
