//! `memreport-fleet export FILE… --to parquet -o DATASET`: writes reports, dumps and recordings as
//! files of a dataset.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use about_memory::Failure;
use about_memory::input::dump::{DumpReader, DumpSource};
use clap::{Args, ValueEnum};
use memreport::snapshot::read::{self, Entry, Options, Sink};
use memreport_analysis::export::{Heap, HeapOptions};

use super::resource_args::ResourceArgs;
use crate::dataset::{Partition, write};
use crate::gather::{Batch, Snapshot};
use crate::{otlp, store};

/// `memreport-fleet export`
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Memory reports, dumps by DMD, or recordings
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,

    /// The output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    to: Format,

    /// The folder of the dataset, to which files are added; for OTLP the file
    #[arg(short, long, value_name = "DATASET")]
    output: PathBuf,

    /// Flags of the resource.
    #[command(flatten)]
    resource: ResourceArgs,

    /// The time of the snapshots in milliseconds since 1970 began [default: that in the file, or
    /// else the time of the file's last change]
    #[arg(long, value_name = "MS")]
    time: Option<u64>,

    /// Look for modules and debug files in this directory first; repeat for several
    #[arg(long, value_name = "DIR")]
    symbols: Vec<PathBuf>,

    /// Keep addresses as they are, to look them up centrally; see `memreport-fleet symbols`
    #[arg(long, conflicts_with = "symbols")]
    no_symbols: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Parquet files, partitioned by service, version, date and host
    #[default]
    Parquet,
    /// `ProfilesData` of OTLP: a dump or a recording as an OpenTelemetry profile
    Otlp,
}

/// A file that was opened.
enum Input {
    Report,
    Heap(DumpSource),
}

/// A sink that keeps nothing.
struct Nothing;

impl Sink for Nothing {
    fn restart(&mut self) {}

    fn report(&mut self, _: &Entry<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(())
    }
}

impl ExportArgs {
    /// Writes the files.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub(super) fn run(self, notes: &mut dyn Write) -> Result<(), Failure> {
        let mut reader = DumpReader::new(&self.symbols);
        if self.to == Format::Otlp {
            return self.write_otlp(&mut reader, notes);
        }
        for path in &self.inputs {
            let bytes =
                std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let input = self.open(path, &bytes, &mut reader, notes)?;
            let (batch, partition, snapshot) = self.gather(path, &bytes, &input)?;
            for (table, rows) in batch.into_tables() {
                let file = self.output.join(partition.path(table, &snapshot.id));
                store::add(&file, &rows.parquet()?)?;
            }
        }
        let count = self.inputs.len();
        let snapshots = if count == 1 { "snapshot" } else { "snapshots" };
        writeln!(notes, "wrote {count} {snapshots} into {}", self.output.display())?;
        Ok(())
    }

    fn open(
        &self,
        path: &Path,
        bytes: &[u8],
        reader: &mut DumpReader,
        notes: &mut dyn Write,
    ) -> Result<Input, Failure> {
        if read::read(&mut &bytes[..], Options::default(), &mut Nothing).is_ok() {
            return Ok(Input::Report);
        }
        if self.no_symbols
            && let Ok(dump) = DumpReader::load(path)
        {
            return Ok(Input::Heap(DumpSource::Dump(Box::new(dump))));
        }
        Ok(Input::Heap(reader.open(path, notes)?))
    }

    /// Returns the rows of a file, and where they belong.
    fn gather(
        &self,
        path: &Path,
        bytes: &[u8],
        input: &Input,
    ) -> Result<(Batch, Partition, Snapshot), Failure> {
        let mut resource = self.resource.resource();
        let mut batch = Batch::default();
        let snapshot = match input {
            Input::Report => {
                let header = read::read(&mut &bytes[..], Options::default(), &mut Nothing)?;
                let name = header.own.process.map(|process| process.name).unwrap_or_default();
                resource.set_default("service.name", &name);
                let time = self.time_of(path, header.own.time_ms)?;
                let snapshot = Snapshot::of_file(bytes, time, resource);
                batch.add_report(&snapshot, bytes)?;
                snapshot
            }
            Input::Heap(source) => {
                let (program, time) = match source {
                    DumpSource::Dump(dump) => {
                        let program = dump.extension.as_ref().and_then(|own| own.program.clone());
                        (program, None)
                    }
                    DumpSource::Recording(history) => {
                        let recording = history.recording();
                        let end = recording.started_ms + recording.length / 1000;
                        (recording.program.clone(), Some(end))
                    }
                };
                let program = program.unwrap_or_default();
                resource.set_default("service.name", program.rsplit('/').next().unwrap_or(""));
                let time = self.time_of(path, time)?;
                let snapshot = Snapshot::of_file(bytes, time, resource);
                match source {
                    DumpSource::Dump(dump) => batch.add_dump(&snapshot, dump)?,
                    DumpSource::Recording(history) => batch.add_recording(&snapshot, history)?,
                }
                snapshot
            }
        };
        let partition = Partition::new(&snapshot.resource, snapshot.time_ms);
        Ok((batch, partition, snapshot))
    }

    /// Returns the time of a snapshot: of the flag, of the file's contents, or of its last change.
    fn time_of(&self, path: &Path, stated: Option<u64>) -> Result<u64, Failure> {
        if let Some(time) = self.time.or(stated) {
            return Ok(time);
        }
        let changed = std::fs::metadata(path)?.modified()?.duration_since(UNIX_EPOCH)?;
        Ok(u64::try_from(changed.as_millis())?)
    }

    fn write_otlp(&self, reader: &mut DumpReader, notes: &mut dyn Write) -> Result<(), Failure> {
        let mut profiles = otlp::Profiles::default();
        for path in &self.inputs {
            let bytes =
                std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let Input::Heap(source) = self.open(path, &bytes, reader, notes)? else {
                let path = path.display();
                return Err(format!("{path}: a report has no stacks; export a dump").into());
            };
            let mut options = HeapOptions::default();
            options.spans = true;
            let (heap, program, time) = match &source {
                DumpSource::Dump(dump) => {
                    let time = self.time_of(path, None)?;
                    options.taken = UNIX_EPOCH.checked_add(std::time::Duration::from_millis(time));
                    (Heap::new(dump, &options)?, None, time)
                }
                DumpSource::Recording(history) => {
                    let recording = history.recording();
                    let end = recording.started_ms + recording.length / 1000;
                    let heap = history.heap_and_allocated(recording.length, &options)?;
                    (heap, recording.program.clone(), self.time_of(path, Some(end))?)
                }
            };
            let program = program.unwrap_or_else(|| heap.program().to_owned());
            let mut resource = self.resource.resource();
            resource.set_default("service.name", program.rsplit('/').next().unwrap_or(""));
            profiles.add(&heap, &resource, time);
        }
        write(&self.output, &profiles.into_bytes())?;
        Ok(())
    }
}
