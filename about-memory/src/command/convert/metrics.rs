//! `about-memory metrics FILE`: prints a memory report as OpenMetrics text.

use crate::context::Context;
use crate::error::{Failure, exit_code};
use crate::input::InputArgs;
use crate::input::open;
use clap::Args;
use memreport::snapshot::read::{Entry, NumericEntry, Sink};
use memreport::{Kind, Report, Units, metrics};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory metrics`
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// A memory report, or the pid of a running program; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print the process with NAME in its name [default: the only one]
    #[arg(long, value_name = "NAME")]
    process: Option<String>,

    /// Flags of the reader of reports.
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
        let Some(NumericEntry { process, kind, units, amount }) = entry.numbers() else {
            return Ok(());
        };
        let mut report = Report::other(entry.path, amount, "");
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
        Ok(())
    }
}

impl MetricsArgs {
    /// Prints the metrics of one process.
    ///
    /// # Errors
    /// The file cannot be read, or no process or several match: metrics have no label for the
    /// process.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut processes = Processes::default();
        let header = open::read(&self.file, self.input.options(), &mut processes)?;
        let wanted = self.process.as_deref().unwrap_or_default();
        processes.reports.retain(|name, _| name.contains(wanted));
        let file = self.file.display();
        let mut found = processes.reports.iter();
        match (found.next(), found.next()) {
            (Some((_, reports)), None) => {
                context.out.machine_bytes().write_all(metrics::text(reports).as_bytes())?;
                Ok(exit_code(!header.own.missed.is_empty()))
            }
            (None, _) => Err(format!("{file}: no process is called `{wanted}`").into()),
            (Some((first, _)), Some((second, _))) => Err(format!(
                "{file}: several processes match, as `{first}` and `{second}`; choose one with --process"
            )
            .into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn metrics(text: &str, more: &[&str]) -> Result<String, Failure> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("report.json");
        std::fs::write(&file, text)?;
        let name = file.to_string_lossy();
        let words = ["metrics", &name].into_iter().chain(more.iter().copied());
        let command = MetricsArgs::augment_args(clap::Command::new("metrics"));
        let args = MetricsArgs::from_arg_matches(&command.try_get_matches_from(words)?)?;
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        args.run(&mut Context::new(&mut out, &mut notes))?;
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
