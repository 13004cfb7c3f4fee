//! `about-memory export DUMP --to FORMAT`: writes a dump or a recording as the file of another
//! viewer.

use crate::command::flags::blocks::ReportedArg;
use crate::command::flags::{Output, refuse_input};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError, DumpSource, time_of};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use memreport_analysis::export;
use memreport_analysis::export::{Format, Frames, Heap, HeapOptions, History, StackKind};
use memreport_analysis::heap::SampleLabel;
use memreport_analysis::heap::history::HistoryError;
use memreport_analysis::recording::Moment;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

/// `about-memory export`
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Dumps by DMD, memreport's or Firefox's, or recordings; `-` is standard input. Massif and
    /// MemoryInfra take several, in order; the Firefox Profiler takes several recordings
    #[arg(value_name = "DUMP|RECORDING", required = true)]
    inputs: Vec<PathBuf>,

    /// The output format; also `parquet` and `otlp`, by the program memreport-fleet
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: FormatArg,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Export the heap of a recording at this moment: `peak`, `end`, or seconds since the start;
    /// repeat for several. By default the end; Massif and the Firefox Profiler get the whole
    /// timeline
    #[arg(long, value_name = "MOMENT")]
    at: Vec<Moment>,

    /// Build stacks from these frames
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    stacks: StacksArg,

    /// Only blocks with this number of reports
    #[arg(long, value_enum, value_name = "REPORTED")]
    only: Option<ReportedArg>,

    /// Only frames of the program and its crates, without the standard library
    #[arg(long)]
    own_frames: bool,

    /// Give each sample of a pprof profile this label, such as `service_name=shop`; repeat for
    /// several
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<SampleLabel>,

    /// Give samples of a pprof profile `trace_id` and `span_id`, where scopes are linked to spans
    #[arg(long)]
    spans: bool,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

fn label(text: &str) -> Result<SampleLabel, String> {
    let (key, value) = text.split_once('=').ok_or("a `=` is missing: KEY=VALUE")?;
    if key.is_empty() || value.is_empty() {
        return Err("neither key nor value may be empty".to_owned());
    }
    Ok(SampleLabel::new(key, value))
}

/// An output format, with its viewers as help.
#[derive(Debug, Clone, Copy)]
struct FormatArg(Format);

impl ValueEnum for FormatArg {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<FormatArg>> =
            LazyLock::new(|| Format::ALL.iter().copied().map(FormatArg).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.viewers()))
    }
}

/// The frames of stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum StacksArg {
    /// Functions
    #[default]
    Native,
    /// The scopes of the program: Chrome's pseudo stacks
    Scopes,
    /// Functions, below the scopes in which they were called
    ScopesThenNative,
}

impl From<StacksArg> for StackKind {
    fn from(stacks: StacksArg) -> Self {
        match stacks {
            StacksArg::Native => Self::Native,
            StacksArg::Scopes => Self::Scopes,
            StacksArg::ScopesThenNative => Self::ScopesThenNative,
        }
    }
}

/// The data to write.
enum Subject {
    Heaps(Vec<Heap>),
    Moment(Box<History>, u64),
    OverTime(Vec<History>),
}

impl ExportArgs {
    /// Writes the file to standard output, or to the file of `--output`.
    ///
    /// # Errors
    /// The input cannot be read or does not fit the format, or the file cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let format = self.to.0;
        let count = self.inputs.len().max(self.at.len());
        if count > 1 && !format.takes_several() && !format.has_time() {
            return Err(DumpError::Several.into());
        }
        if format == Format::Pprof && self.output.is_none() && context.terminal.is_some() {
            return Err(DumpError::Binary.into());
        }
        if let Some(output) = &self.output {
            refuse_input(output, &self.inputs)?;
        }
        let mut options = HeapOptions::default();
        options.only = self.only.map(ReportedArg::class);
        options.frames = if self.own_frames { Frames::Own } else { Frames::All };
        options.stacks = self.stacks.into();
        if format != Format::Pprof && (self.spans || !self.labels.is_empty()) {
            return Err("--label and --spans are for pprof profiles".to_owned().into());
        }
        (options.labels, options.spans) = (self.labels.clone(), self.spans);
        let subject = subject(&self, format, &options, &mut context.notes)?;
        let written = match &self.output {
            None => subject
                .write(format, &options, &mut context.out.machine_bytes())
                .and_then(|()| context.out.flush()),
            Some(path) => {
                // Create the file last: an error above leaves an older file alone.
                let mut file =
                    Output::create(path).map_err(|error| DumpError::Create(path.clone(), error))?;
                subject.write(format, &options, &mut file).and_then(|()| file.keep())
            }
        };
        written.map_err(|error| failure(error, &self.inputs))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the failure of an export: to read a recording again, or to write the answer.
fn failure(error: io::Error, inputs: &[PathBuf]) -> Failure {
    match error.downcast::<HistoryError>() {
        Ok(error) => DumpError::History(inputs.to_vec(), error).into(),
        Err(error) => Failure::answer(error),
    }
}

fn subject(
    args: &ExportArgs,
    format: Format,
    options: &HeapOptions,
    notes: &mut dyn Write,
) -> Result<Subject, DumpError> {
    let mut reader = args.dump.reader();
    let mut inputs = Vec::new();
    for path in &args.inputs {
        let input = reader.open(path, notes)?;
        if matches!(input, DumpSource::Recording(_)) && options.only.is_some() {
            return Err(DumpError::Unreported(path.clone()));
        }
        inputs.push(input);
    }
    let is_recording = |input: &DumpSource| matches!(input, DumpSource::Recording(_));
    if inputs.iter().all(is_recording) && args.at.len() <= 1 {
        let is_over_time = args.at.is_empty() && format.has_time();
        if is_over_time && (inputs.len() == 1 || format.takes_several_recordings()) {
            return Ok(Subject::OverTime(inputs.into_iter().filter_map(history).collect()));
        }
        if inputs.len() == 1
            && let Some(history) = inputs.pop().and_then(history)
        {
            let time = time_of(&history, args.at.first().copied(), &args.inputs[0])?;
            return Ok(Subject::Moment(Box::new(history), time));
        }
    }
    let mut heaps = Vec::new();
    for (input, path) in inputs.iter().zip(&args.inputs) {
        let moments = args.at.iter().copied().map(Some);
        for at in moments.chain(args.at.is_empty().then_some(None)) {
            heaps.push(input.heap(at, options, path)?);
        }
    }
    if heaps.len() > 1 && !format.takes_several() {
        return Err(DumpError::Several);
    }
    Ok(Subject::Heaps(heaps))
}

fn history(source: DumpSource) -> Option<History> {
    match source {
        DumpSource::Recording(history) => Some(*history),
        DumpSource::Dump(_) => None,
    }
}

impl Subject {
    fn write(&self, format: Format, options: &HeapOptions, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Subject::Heaps(heaps) => export::write(format, heaps, out),
            Subject::Moment(history, at) => {
                export::write_moment(format, history, *at, options, out)
            }
            Subject::OverTime(histories) => {
                export::write_histories(format, histories, options, out)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memreport_analysis::recording::RecordingError;

    #[test]
    fn reading_and_writing_fail_in_their_own_words() {
        let inputs: [PathBuf; 2] = ["a.rec".into(), "b.rec".into()];
        let changed = || io::Error::other(HistoryError::from(RecordingError::Changed));
        let message = "the recording was changed while it was read; read it again";
        assert_eq!(failure(changed(), &inputs[..1]).with_causes(), format!("a.rec: {message}"));
        let of_two = failure(changed(), &inputs).with_causes();
        assert_eq!(of_two, format!("one of a.rec, b.rec: {message}"));
        let full = failure(io::ErrorKind::StorageFull.into(), &inputs).with_causes();
        assert_eq!(full, "the answer cannot be written: no storage space");
    }
}
