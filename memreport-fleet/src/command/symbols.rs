//! `memreport-fleet symbols DATASET --store DIR`: looks up the functions of a dataset's stacks.

use std::io::Write;
use std::path::PathBuf;

use about_memory::Failure;
use clap::Args;

use crate::symbols::{Found, look_up};

/// `memreport-fleet symbols`
#[derive(Debug, Args)]
pub(crate) struct SymbolsArgs {
    /// The folder of the dataset
    #[arg(value_name = "DATASET")]
    dataset: PathBuf,

    /// A folder with modules, with debug files by build id (`.build-id/ab/cdef.debug`), or as
    /// debuginfod lays them out (`buildid/ID/debuginfo`); repeat for several
    #[arg(long, value_name = "DIR")]
    store: Vec<PathBuf>,
}

impl SymbolsArgs {
    /// Adds what is found to the table `symbols`.
    ///
    /// # Errors
    /// The dataset cannot be read or written.
    pub(super) fn run(self, notes: &mut dyn Write) -> Result<(), Failure> {
        let Found { stacks, known, added } = look_up(&self.dataset, &self.store)?;
        writeln!(
            notes,
            "{stacks} stacks have addresses: {known} were looked up before, {added} now, {} are not \
             found",
            stacks - known - added
        )?;
        Ok(())
    }
}
