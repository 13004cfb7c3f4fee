//! `cargo memreport` on a system without the tracker: an error that names what to do instead.

use crate::context::{Context, Surface, Words};
use crate::error::Failure;
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Is not on this system: DMD does not track programs here.
///
/// Measure values in the program, save a report by `memreport::snapshot().save("heap.json.gz")`,
/// and show it by `about-memory heap.json.gz`.
#[derive(Debug, Parser)]
#[command(name = "cargo memreport", bin_name = "cargo memreport", version)]
pub struct CargoCli {
    /// Any words.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

impl CargoCli {
    /// Parses the words of the command line. Cargo passes `memreport` as the first argument.
    ///
    /// # Errors
    ///
    /// The words ask for the help.
    pub fn parse_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let words = words.into_iter().enumerate();
        let is_ours = |(place, word): &(usize, OsString)| *place != 1 || word != "memreport";
        Self::try_parse_from(words.filter(is_ours).map(|(_, word)| word))
    }
}

impl Words for CargoCli {
    fn surface(&self) -> Surface {
        Surface::default()
    }

    fn run_command(self, _: &mut Context<'_>) -> Result<ExitCode, Failure> {
        Err(crate::command::NO_TRACKER.into())
    }
}
