//! `about-memory heap why-alive DUMP`: shows the reference paths that keep blocks alive.

use super::scan::Scan;
use super::scan_options;
use crate::command::flags::{candidates, hexadecimal};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError};
use clap::Args;
use memreport_analysis::retention;
use memreport_analysis::retention::{PathOptions, Retention, Target};
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory heap why-alive`
#[derive(Debug, Args)]
pub struct WhyAliveArgs {
    /// A dump with DMD=--mode=scan, by memreport or Firefox; `-` is standard input; or the pid or
    /// the name of a running program, also of one without DMD
    #[arg(value_name = "DUMP|PID|NAME", add = candidates::programs_and_files())]
    input: PathBuf,

    /// The blocks to explain.
    #[command(flatten)]
    target: TargetArgs,

    /// Show N paths
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

/// The blocks to explain: one of these flags.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TargetArgs {
    /// The block at this address (hexadecimal): several of its shortest paths
    #[arg(long, value_name = "ADDRESS", value_parser = hexadecimal)]
    block: Option<u64>,

    /// Blocks of the type with this name: the shortest path of each, similar ones together
    #[arg(long = "type", value_name = "NAME")]
    of_type: Option<String>,

    /// Blocks of types with TEXT in their names
    #[arg(long = "type-contains", value_name = "TEXT")]
    of_type_with: Option<String>,

    /// Blocks reported by a path or field with TEXT in its name
    #[arg(long, value_name = "TEXT")]
    reporter: Option<String>,

    /// Blocks allocated below a function with TEXT in its name
    #[arg(long, value_name = "TEXT")]
    site: Option<String>,

    /// The blocks of record N of `about-memory heap records DUMP`
    #[arg(long, value_name = "N")]
    record: Option<usize>,
}

impl TargetArgs {
    fn target(&self) -> Target {
        match self {
            Self { block: Some(address), .. } => Target::Block(*address),
            Self { of_type: Some(name), .. } => Target::Type(name.clone()),
            Self { of_type_with: Some(text), .. } => Target::TypeWith(text.clone()),
            Self { reporter: Some(text), .. } => Target::Reporter(text.clone()),
            Self { site: Some(text), .. } => Target::Site(text.clone()),
            Self { record, .. } => Target::Record(record.unwrap_or(0)),
        }
    }
}

impl WhyAliveArgs {
    /// Prints the paths.
    ///
    /// # Errors
    /// The dump cannot be read, is no scan or has no such block, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut reader = self.dump.reader();
        let dump = Scan::new(&self.input).read(&mut reader, &mut context.notes)?;
        reader.free_modules();
        let options = scan_options::explain_options(context, self.json);
        let damaged = |error| DumpError::Clamp(self.input.clone(), error);
        let retention = Retention::new(&dump, &options).map_err(damaged)?;
        let mut options = PathOptions::default();
        options.top = self.top;
        let found = retention.why_alive(&self.target.target(), &options);
        retention.check_words().map_err(damaged)?;
        let mut found = found.map_err(|error| DumpError::NotThere(self.input, error))?;
        let steps = found.paths.iter().flat_map(|path| &path.steps);
        let members = reader.members(&dump, &retention.pointing_types(steps));
        retention.name_fields(found.paths.iter_mut().flat_map(|path| &mut path.steps), &members);
        match self.json {
            true => retention::write_why_alive_json(&retention, &found, &mut context.out.json()),
            false => retention::write_why_alive(&retention, &found, &mut context.out),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}
