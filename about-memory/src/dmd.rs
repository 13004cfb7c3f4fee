//! `about-memory dmd DUMP [DUMP2]`: what dmd.py does, with its options and its text, and then more.

mod args;
mod error;
mod input;
mod only;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem::ManuallyDrop;

use memreport_analysis::analysis;
use memreport_analysis::analysis::{
    Digest, ExplainOptions, Explained, Filter, Group, Grouping, Referred, Stacks, TextOptions,
};
use memreport_analysis::read::Dump;

pub use args::DmdArgs;
pub(crate) use args::hexadecimal;
pub use error::DmdError;
pub use only::OnlyArg;

/// Runs the subcommand: answers to `out` (or to the file of `--output`), remarks to `err`.
///
/// # Errors
///
/// See [`DmdError`]. That nobody reads `out` any more is no error.
pub fn main(args: &DmdArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), DmdError> {
    // The process is about to end: freeing a million records one by one would be time lost.
    let answer = ManuallyDrop::new(Answer::prepare(args, err)?);
    let written = match &args.output {
        None => answer.write(args, out).and_then(|()| out.flush()),
        Some(path) => {
            // Made only now: a mistake leaves an older answer alone.
            let file = File::create(path).map_err(|error| DmdError::Create(path.clone(), error))?;
            let mut file = BufWriter::new(file);
            answer.write(args, &mut file).and_then(|()| file.flush())
        }
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(DmdError::Write(error)),
        _ => Ok(()),
    }
}

/// What there is to show.
enum Answer {
    Records(Digest, Stacks),
    Explained(Explained, ExplainOptions),
    Groups(Vec<Group>, usize),
    Referred(Box<Dump>, Referred, ExplainOptions),
}

impl Answer {
    fn prepare(args: &DmdArgs, err: &mut dyn Write) -> Result<Self, DmdError> {
        let mut reader = input::Reader::new(args);
        let first = reader.read(&args.input, err)?;
        let mut options = explain_options(args);
        if let Some(address) = args.referrers {
            let referred = analysis::referrers(&first, address)
                .map_err(|error| DmdError::Referrers(args.input.clone(), error))?;
            return Ok(Self::Referred(Box::new(first), referred, options));
        }
        if let Some(by) = args.by {
            return Ok(Self::Groups(analysis::group_by(&first, by.into(), &options), options.top));
        }
        if args.explain || args.json {
            reader.complete(&first, &mut options);
            return Ok(Self::Explained(analysis::explain(&first, &options), options));
        }
        let how = Grouping::new(args.max_frames.into(), args.ignore_alloc_fns);
        let mut stacks = Stacks::default();
        let mut digest = analysis::digest(&first, &how, &mut stacks);
        if let Some(path) = &args.input2 {
            let second = reader.read(path, err)?;
            digest = analysis::diff(digest, analysis::digest(&second, &how, &mut stacks))?;
        }
        Ok(Self::Records(digest, stacks))
    }

    fn write(&self, args: &DmdArgs, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Explained(explained, options) if args.json => {
                analysis::write_explained_json(explained, options, out)
            }
            Self::Explained(explained, options) => {
                analysis::write_explained(explained, options, out)
            }
            Self::Groups(groups, top) if args.json => {
                analysis::write_groups_json(groups, *top, out)
            }
            Self::Groups(groups, top) => analysis::write_groups(groups, *top, out),
            Self::Referred(dump, referred, options) => {
                analysis::write_referrers(dump, referred, options, out)
            }
            Self::Records(digest, stacks) => {
                let options = TextOptions {
                    heading: heading(),
                    sort_by: args.sort_by.into(),
                    filters: args.filter.iter().map(|filter| Filter::new(filter)).collect(),
                    filter_stacks_for_testing: args.filter_stacks_for_testing,
                };
                analysis::write_text(digest, stacks, &options, out)
            }
        }
    }
}

fn explain_options(args: &DmdArgs) -> ExplainOptions {
    let mut options = ExplainOptions::default();
    let is_list = args.by.is_some() || args.referrers.is_some();
    options.top = args.top.unwrap_or(if is_list { 20 } else { 5 });
    options.max_frames = args.max_frames.into();
    // Paths of the program are shortened where its directory is the one we are in; elsewhere they stay whole.
    options.root =
        std::env::current_dir().ok().map(|directory| directory.to_string_lossy().into_owned());
    options
}

/// The command line without directories, so that the answer does not depend on where it was asked.
fn heading() -> String {
    let base = |arg: std::ffi::OsString| {
        let arg = arg.to_string_lossy();
        arg.rsplit('/').next().unwrap_or_default().to_owned()
    };
    std::env::args_os().map(base).collect::<Vec<String>>().join(" ")
}
