//! `about-memory snapshot PROGRAM… -o FILE`: saves the reports of running programs, once or in a
//! series.

mod series;

use crate::command::flags::{candidates, seconds};
use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::live::{self, Target};
use crate::input::open::Ignore;
use crate::report::notes;
use clap::Args;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use memreport::__private::PrivateFile;
use memreport::snapshot::read::{self, Options};
use serde_json::Value;
use series::SeriesArgs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// `about-memory snapshot`
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Running programs, by pid or name; see `about-memory ps`. The reports of several go into one
    /// file
    #[arg(required = true, value_name = "PID|NAME", add = candidates::programs())]
    programs: Vec<Target>,
    /// The file to write; gzipped if the name ends in `.gz`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write a DMD dump of the same moment too, `heap.dmd.json.gz` beside `heap.json.gz`; for one
    /// program only
    #[arg(long)]
    dump: bool,
    /// Leave private words out of reports: those that the program's reporters replace on request,
    /// and names of mapped files
    #[arg(long)]
    anonymize: bool,
    /// Wait at most this long for each program
    #[arg(long, alias = "patience", value_name = "TIME", default_value = "30", value_parser = seconds)]
    timeout: Duration,
    /// Flags of a series of snapshots.
    #[command(flatten)]
    series: SeriesArgs,
}

impl SnapshotArgs {
    /// Saves one snapshot or several.
    ///
    /// # Errors
    /// A program cannot be asked, or a file cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if self.dump && self.programs.len() > 1 {
            return Err("a dump is of one program: ask each for its own".into());
        }
        let is_incomplete = match self.series.every {
            Some(every) => series::take(&self, every, &mut context.notes)?,
            None => take(&self, &self.output, &mut context.notes)?,
        };
        Ok(exit_code(is_incomplete))
    }
}

/// Takes one snapshot and writes it to this file. Returns whether it is incomplete.
fn take(args: &SnapshotArgs, output: &Path, notes: &mut dyn Write) -> Result<bool, Failure> {
    let mut files = Vec::new();
    let mut is_incomplete = false;
    for target in &args.programs {
        let connection = live::choose(target, args.timeout)?.anonymize(args.anonymize);
        let report = connection.report(args.dump)?;
        if let Some(dump) = report.dump {
            let path = dmd::dump::beside(output);
            write(&path, &dump)?;
            writeln!(notes, "wrote {}", path.display())?;
        }
        let header = read::read(&mut &report.report[..], Options::default(), &mut Ignore)?;
        if let Some(missed) = notes::incomplete(&header.own.missed) {
            is_incomplete = true;
            writeln!(notes, "note: {}: {missed}", connection.pid())?;
        }
        files.push(report.report);
    }
    let file = match &files[..] {
        [one] => one.clone(),
        several => merge(several)?,
    };
    write(output, &file)?;
    writeln!(notes, "wrote {}", output.display())?;
    Ok(is_incomplete)
}

/// Merges reports into one file, each under its own process, in the format of Firefox.
fn merge(files: &[Vec<u8>]) -> Result<Vec<u8>, Failure> {
    let mut merged: Option<Value> = None;
    for file in files {
        let mut file: Value = serde_json::from_reader(GzDecoder::new(&file[..]))?;
        let Some(merged) = &mut merged else {
            merged = Some(file);
            continue;
        };
        let lists = [
            ("", "reports"),
            ("/memreport", "notes"),
            ("/memreport", "missed"),
            ("/memreport", "reporters"),
        ];
        for (object, list) in lists {
            if let (Some(all), Some(more)) = (
                merged.pointer_mut(object).and_then(Value::as_object_mut),
                file.pointer_mut(&format!("{object}/{list}")).and_then(Value::as_array_mut),
            ) {
                // Lists that would be empty may be absent.
                let all = all.entry(list).or_insert_with(|| Value::Array(Vec::new()));
                all.as_array_mut().into_iter().for_each(|all| all.append(more));
            }
        }
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut packed, &merged)?;
    Ok(packed.finish()?)
}

/// Writes a gzipped file, or its text if the name does not end in `.gz`. Renames it into place:
/// nobody sees it half written.
fn write(path: &Path, gzipped: &[u8]) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let is_zipped = path.extension().is_some_and(|ending| ending == "gz");
    let mut unfinished = PrivateFile::create(path).map_err(named)?;
    if is_zipped {
        unfinished.write_all(gzipped).map_err(named)?;
    } else {
        let mut text = Vec::new();
        GzDecoder::new(gzipped).read_to_end(&mut text).map_err(named)?;
        unfinished.write_all(&text).map_err(named)?;
    }
    unfinished.keep().map(drop).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merged_reports_have_every_list_of_each() {
        let zipped = |file: Value| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            serde_json::to_writer(&mut packed, &file).unwrap();
            packed.finish().unwrap()
        };
        let first = json!({ "reports": [1], "memreport": { "notes": ["a"], "reporters": ["x"] } });
        let second = json!({
            "reports": [2, 3], "memreport": { "notes": [], "missed": ["m"], "reporters": ["y"] },
        });
        let merged = merge(&[zipped(first), zipped(second)]).unwrap();
        let merged: Value = serde_json::from_reader(GzDecoder::new(&merged[..])).unwrap();
        assert_eq!(
            merged,
            json!({
                "reports": [1, 2, 3],
                "memreport": { "notes": ["a"], "reporters": ["x", "y"], "missed": ["m"] },
            })
        );
    }
}
