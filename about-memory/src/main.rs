//! Runs `about-memory`.

use about_memory::{Cli, start};
use std::process::ExitCode;

fn main() -> ExitCode {
    Cli::complete();
    start("about-memory", Cli::parse_words(std::env::args_os()))
}
