//! Shows memory reports and dumps as text.

use about_memory::cli::{Cli, Command};
use about_memory::show::{self, Failure};
use about_memory::{
    ask, census, check, coverage, dmd, export, heap, held, html, log, metrics, ps, record,
    resident, retained, run, serve, snapshot, symbolicate, watch,
};
use clap::Parser;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let done = run_command(&cli, &mut out, &mut io::stderr());
    let done = done.and_then(|code| out.flush().map(|()| code).map_err(Failure::from));
    // What is left in the buffer after a failure is not worth a second failure on the way out.
    let _ = out.into_parts();
    done.unwrap_or_else(|error| fail(&*error))
}

fn run_command(
    cli: &Cli,
    mut out: &mut dyn Write,
    mut notes: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    match &cli.command {
        None => show::show(&cli.show, &mut out, &mut notes).map(|()| ExitCode::SUCCESS),
        Some(Command::Diff(args)) => {
            show::diff(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Run(args)) => run::main(args, &mut out, &mut notes).map(ExitCode::from),
        Some(Command::Record(args)) => {
            record::record(args, &mut out, &mut notes).map(ExitCode::from)
        }
        Some(Command::Recording(args)) => {
            record::show(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Dmd(args)) => {
            dmd::main(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS).map_err(Failure::from)
        }
        Some(Command::Coverage(args)) => coverage::main(args, &mut out, &mut notes)
            .map(|()| ExitCode::SUCCESS)
            .map_err(Failure::from),
        Some(Command::Resident(args)) => {
            resident::main(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Metrics(args)) => metrics::main(args, &mut out).map(|()| ExitCode::SUCCESS),
        Some(Command::Symbolicate(args)) => {
            symbolicate::main(args, &mut notes).map(|()| ExitCode::SUCCESS).map_err(Failure::from)
        }
        Some(Command::Html(args)) => html::main(args, &mut notes).map(|()| ExitCode::SUCCESS),
        Some(Command::Serve(args)) => {
            serve::main(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Export(args)) => answered(export::main(args, &mut out, &mut notes)),
        Some(Command::Heap(args)) => answered(heap::main(args, &mut out, &mut notes)),
        Some(Command::HeapDiff(args)) => answered(heap::diff(args, &mut out, &mut notes)),
        Some(Command::Census(args)) => {
            census::main(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Retained(args)) => answered(retained::main(args, &mut out, &mut notes)),
        Some(Command::Held(args)) => answered(held::main(args, &mut out, &mut notes)),
        Some(Command::Check(args)) => check::main(args, &mut out, &mut notes),
        Some(Command::Ps(args)) => {
            ps::main(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS).map_err(Failure::from)
        }
        Some(Command::Live(args)) => watch::main(args).map(|()| ExitCode::SUCCESS),
        Some(Command::Snapshot(args)) => {
            snapshot::main(args, &mut notes).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Minimize(args)) => ask::minimize(args, &mut out).map(|()| ExitCode::SUCCESS),
        Some(Command::Track(args)) => ask::track(args, &mut out).map(|()| ExitCode::SUCCESS),
        Some(Command::Log(args)) => {
            log::main(args, &mut out, &mut notes).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Ask(args)) => ask::main(args, &mut out).map(|()| ExitCode::SUCCESS),
    }
}

/// Exit status 2; but whoever closes the pipe has seen enough.
fn fail(error: &(dyn Error + 'static)) -> ExitCode {
    if error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    {
        return ExitCode::SUCCESS;
    }
    // Standard error may be closed as well; then there is nobody to tell.
    let _ = writeln!(io::stderr(), "about-memory: {}", show::told(error));
    ExitCode::from(2)
}

/// What a command ends with that has nothing to say by its exit status.
fn answered(done: Result<(), impl Into<Failure>>) -> Result<ExitCode, Failure> {
    done.map(|()| ExitCode::SUCCESS).map_err(Into::into)
}
