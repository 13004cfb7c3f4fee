//! `about-memory metrics FILE`: a memory report in the text of OpenMetrics.

use crate::cli::InputArgs;
use crate::open;
use crate::show::Failure;
use clap::Args;
use memreport::snapshot::read::{Entry, Field, Sink};
use memreport::{Kind, Report, Units, metrics};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

/// `about-memory metrics`
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// A memory report, or the number of a running process; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Write the process with NAME in its name [default: the only one]
    #[arg(long, value_name = "NAME")]
    process: Option<String>,

    /// How files are read.
    #[command(flatten)]
    input: InputArgs,
}

/// The reports of each process.
#[derive(Debug, Default)]
struct Processes {
    reports: BTreeMap<String, Vec<Report>>,
}

impl Sink for Processes {
    fn restart(&mut self) {
        self.reports.clear();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (Field::Number(kind), Field::Number(units), Field::Number(amount)) =
            (&entry.kind, &entry.units, &entry.amount)
        else {
            return Ok(());
        };
        let process = match &entry.process {
            Field::Text(name) => name.as_ref(),
            _ => "",
        };
        // A double below this is a whole number exactly.
        if amount.abs() < 9e15 {
            let mut report = Report::other(entry.path, format!("{amount:.0}").parse()?, "");
            report.kind = match kind {
                0.0 => Kind::NonHeap,
                1.0 => Kind::Heap,
                _ => Kind::Other,
            };
            report.units = match units {
                0.0 => Units::Bytes,
                1.0 => Units::Count,
                2.0 => Units::CountCumulative,
                3.0 => Units::Percentage,
                _ => return Ok(()),
            };
            self.reports.entry(process.to_owned()).or_default().push(report);
        }
        Ok(())
    }
}

/// Runs the subcommand.
///
/// # Errors
/// The file cannot be read, or it is not clear which of its processes is meant: metrics have no name for processes.
pub fn main(args: &MetricsArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mut processes = Processes::default();
    open::read(&args.file, args.input.options(), &mut processes)?;
    let wanted = args.process.as_deref().unwrap_or_default();
    processes.reports.retain(|name, _| name.contains(wanted));
    let mut found = processes.reports.iter();
    match (found.next(), found.next()) {
        (Some((_, reports)), None) => Ok(out.write_all(metrics::text(reports).as_bytes())?),
        (None, _) => {
            Err(format!("{}: no process is called `{wanted}`", args.file.display()).into())
        }
        (Some((first, _)), Some((second, _))) => Err(format!(
            "{}: several processes match, as `{first}` and `{second}`; choose one with --process",
            args.file.display()
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn metrics(text: &str, more: &[&str]) -> Result<String, Failure> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("report.json");
        std::fs::write(&file, text)?;
        let name = file.to_string_lossy();
        let words = ["about-memory", "metrics", &name].into_iter().chain(more.iter().copied());
        let Some(Command::Metrics(args)) = Cli::try_parse_from(words)?.command else {
            return Err("it is not metrics".into());
        };
        let mut out = Vec::new();
        main(&args, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn a_process_is_written_and_two_are_not_added_up() {
        let file = r#"{"version":1,"hasMozMallocUsableSize":true,"reports":[
            {"process":"a","path":"explicit/x/y","kind":1,"units":0,"amount":5,"description":""},
            {"process":"a","path":"page-faults-hard","kind":2,"units":2,"amount":7,"description":""},
            {"process":"b","path":"resident","kind":2,"units":0,"amount":9,"description":""}]}"#;
        let text = metrics(file, &["--process", "a"]).unwrap();
        for line in [
            "memreport_page_faults_total{kind=\"hard\"} 7",
            "memreport_reported_bytes{path=\"explicit/x\",kind=\"heap\"} 5",
            "# EOF",
        ] {
            assert!(text.lines().any(|of| of == line), "{line}: {text}");
        }
        assert!(!text.contains("resident"), "{text}");
        let refused = metrics(file, &[]).unwrap_err().to_string();
        assert!(
            refused.ends_with("several processes match, as `a` and `b`; choose one with --process")
        );
        let refused = metrics(file, &["--process", "c"]).unwrap_err().to_string();
        assert!(refused.ends_with("no process is called `c`"), "{refused}");
    }
}
