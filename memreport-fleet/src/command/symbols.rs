//! `memreport-fleet symbols DATASET --store DIR`: looks up the functions of a dataset's stacks.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use about_memory::Failure;
use clap::Args;
use memreport_analysis::symbols::Options;

use super::dataset_arg::Dataset;
use crate::query::Filter;
use crate::schema::{STACKS, SYMBOLS};
use crate::symbols::debuginfod::Servers;
use crate::symbols::{Found, Unknown};

/// `memreport-fleet symbols`
#[derive(Debug, Args)]
pub(crate) struct SymbolsArgs {
    /// The folder of the dataset, or its address in a store: `s3://…`, `gs://…` or `az://…`
    #[arg(value_name = "DATASET")]
    dataset: OsString,

    /// A folder with modules, with debug files by build id (`.build-id/ab/cdef.debug`), or as
    /// debuginfod lays them out (`buildid/ID/debuginfo`); repeat for several
    #[arg(long, value_name = "DIR")]
    store: Vec<PathBuf>,

    /// A server of the debuginfod protocol, for builds that no folder has; repeat for several
    /// [default: those of `$DEBUGINFOD_URLS`]
    #[arg(long, value_name = "URL")]
    debuginfod: Vec<String>,

    /// The folder for files of these servers [default: `$DEBUGINFOD_CACHE_PATH`, or else
    /// `debuginfod_client` in `$XDG_CACHE_HOME` or `~/.cache`]
    #[arg(long, value_name = "DIR")]
    debuginfod_cache: Option<PathBuf>,

    /// The folder for copies of datasets in stores [default: `memreport-fleet` in
    /// `$XDG_CACHE_HOME` or `~/.cache`]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl SymbolsArgs {
    /// Adds what is found to the table `symbols`.
    ///
    /// # Errors
    /// The dataset cannot be read or written.
    pub(super) fn run(self, notes: &mut dyn Write) -> Result<(), Failure> {
        let tables = [&STACKS, &SYMBOLS];
        let cache = self.cache.as_deref();
        let dataset = Dataset::open(&self.dataset, cache, &tables, &Filter::default(), notes)?;
        let unknown = Unknown::of_dataset(dataset.folder())?;
        let mut options = Options::default();
        options.search.clone_from(&self.store);
        self.fetch(&unknown, &mut options, notes)?;
        let (Found { stacks, known, added }, files) = unknown.look_up(options)?;
        dataset.add(&files)?;
        writeln!(
            notes,
            "{stacks} stacks have addresses: {known} were looked up before, {added} now, {} are not \
             found",
            stacks - known - added
        )?;
        Ok(())
    }

    /// Fetches the debug files that no folder has, and adds their folder to those that are
    /// searched.
    fn fetch(
        &self,
        unknown: &Unknown,
        options: &mut Options,
        notes: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut addresses = self.debuginfod.clone();
        if addresses.is_empty() {
            let variable = std::env::var("DEBUGINFOD_URLS").unwrap_or_default();
            // Words such as `ima:enforcing` are policies for other clients.
            let words = variable.split_whitespace().filter(|word| word.starts_with("http"));
            addresses.extend(words.map(str::to_owned));
        }
        if addresses.is_empty() {
            return Ok(());
        }
        let cache = self.debuginfod_cache.clone().or_else(debuginfod_cache);
        let cache =
            cache.ok_or("there is no folder for debug files; --debuginfod-cache names one")?;
        let mut servers = Servers::open(&addresses, cache)?;
        options.search.push(servers.cache().to_owned());
        for build_id in unknown.build_ids() {
            if !options.has_debug_file(build_id) {
                servers.fetch(build_id, notes)?;
            }
        }
        Ok(())
    }
}

/// Returns the folder in which elfutils' clients keep debug files.
fn debuginfod_cache() -> Option<PathBuf> {
    let variable = std::env::var_os("DEBUGINFOD_CACHE_PATH").filter(|value| !value.is_empty());
    variable.map(PathBuf::from).or_else(|| super::dataset_arg::cache_folder("debuginfod_client"))
}
