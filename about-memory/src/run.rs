//! `about-memory run`: runs a program with DMD awake, and shows where its memory is.

mod listen;
pub(crate) mod program;
mod watch;
mod verdict;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use memreport_analysis::analysis;
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::symbols;
use memreport_analysis::symbols::Symboliser;

use verdict::Verdict;
use watch::Setup;

use crate::cli::{DisplayArgs, InputArgs, ShowArgs};
use crate::show::{self, Failure};

/// What `about-memory run` is asked.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Snapshots are taken when the program asks for one (`memreport::snapshot().save(…)`), every N seconds with --every, near \
the peak with --at-peak, on Ctrl-C or SIGTERM, and at exit. The last one before the exit is shown: at exit, a program's \
locals are gone.

$DMD is set to 1 unless it is set already; see `--stacks` there to trade detail for speed.")]
pub struct RunArgs {
    /// Take a snapshot every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub every: Option<Duration>,

    /// Take a snapshot whenever the heap has grown by a twentieth: the last one is near the peak
    #[arg(long)]
    pub at_peak: bool,

    /// Keep the newest N snapshots of each process, and no others
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,

    /// Dark-matter records to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Exit with 1 if more than this share of the heap is unclassified, or anything is reported twice or wrongly
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<f64>,

    /// Keep the snapshots and dumps in this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,

    /// PROGRAM only starts the one to be watched, as a shell script or `cargo run` does: do not look into its file
    #[arg(long)]
    pub wrapper: bool,

    /// How the tree is shown.
    #[command(flatten)]
    pub display: DisplayArgs,

    /// The program and its arguments, after `--`
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// `0.5` or `10s`: the time between two snapshots.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.trim_end_matches('s').parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(every) if every >= Duration::from_millis(10) => Ok(every),
        _ => Err("at least 0.01 seconds".to_owned()),
    }
}

/// Runs the program to its end, and shows the last snapshot of each of its processes. Answers with the exit code.
///
/// # Errors
///
/// See [`RunError`]; and those of showing what the program left.
pub fn main(args: &RunArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<u8, Failure> {
    let ran = run(args)?;
    let mut verdicts = Vec::new();
    for snapshot in ran.last() {
        write_heading(&ran, snapshot, out)?;
        let input = InputArgs { max_size: u64::MAX, utf8: true };
        let files = vec![snapshot.report.clone()];
        writeln!(out)?;
        show::show(&ShowArgs { files, display: args.display.clone(), input }, out, notes)?;
        writeln!(out)?;
        verdicts.push(explain(args, snapshot, out, notes)?);
        out.flush()?;
    }
    for note in &ran.notes {
        writeln!(notes, "about-memory: {note}")?;
    }
    let mut code = 0;
    if let Some(most) = args.fail_above {
        if ran.snapshots.is_empty() {
            writeln!(notes, "about-memory: nothing was measured, so nothing is within the limit")?;
            code = 1;
        }
        for complaint in verdicts.iter().flat_map(|verdict| verdict.complaints(most)) {
            writeln!(notes, "about-memory: {complaint}")?;
            code = 1;
        }
    }
    match describe_end(ran.status) {
        None => Ok(code),
        Some((sentence, code)) => {
            writeln!(notes, "about-memory: {sentence}")?;
            Ok(code)
        }
    }
}

/// Shows what DMD found, and judges it.
fn explain(
    args: &RunArgs,
    snapshot: &Snapshot,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<Verdict, Failure> {
    let mut dump = memreport_analysis::read::read_file(&snapshot.dump)?;
    for note in Symboliser::new(symbols::Options::default()).symbolicate(&mut dump).notes {
        writeln!(notes, "about-memory: {note}")?;
    }
    let mut options = ExplainOptions::default();
    options.top = args.top;
    options.root = std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned());
    let explained = analysis::explain(&dump, &options);
    analysis::write_explained(&explained, &options, out)?;
    Ok(Verdict::new(&explained, verdict::unclassified(&snapshot.report)?))
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    /// How the program ended.
    pub status: ExitStatus,
    /// What was seen of it; the last snapshot before its exit comes last.
    pub snapshots: Vec<Snapshot>,
    /// What a person should know besides.
    pub notes: Vec<String>,
    /// The folder that holds the files, for as long as this lives.
    folder: watch::Folder,
}

/// A snapshot that a program left in the folder.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The process.
    pub pid: u32,
    /// The memory report.
    pub report: PathBuf,
    /// DMD's dump, beside it.
    pub dump: PathBuf,
    /// At which moment it was taken, as the program says.
    pub moment: String,
    /// How long after the program's start.
    pub after: Duration,
}

impl Ran {
    /// The snapshot to show for each process: the last before its exit, or else that at exit.
    #[must_use]
    pub fn last(&self) -> Vec<&Snapshot> {
        let mut last: Vec<&Snapshot> = Vec::new();
        for snapshot in &self.snapshots {
            match last.iter_mut().find(|shown| shown.pid == snapshot.pid) {
                None => last.push(snapshot),
                Some(_) if snapshot.is_at_exit() => {}
                Some(shown) => *shown = snapshot,
            }
        }
        last
    }

    /// How many snapshots there are of this process.
    #[must_use]
    pub fn count(&self, pid: u32) -> usize {
        self.snapshots.iter().filter(|snapshot| snapshot.pid == pid).count()
    }

    /// Where the files are.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

impl Snapshot {
    /// Whether it shows the state at exit, when locals are gone.
    #[must_use]
    pub fn is_at_exit(&self) -> bool {
        self.moment == dmd::run::AT_EXIT
    }
}

/// Runs the program to its end, and gathers what it leaves.
///
/// # Errors
///
/// When there is no such program, or it has no DMD; when the folder or its socket cannot be made.
pub fn run(args: &RunArgs) -> Result<Ran, RunError> {
    let name = args.command.first().cloned().unwrap_or_default();
    let program = program::find(&name)?;
    if !args.wrapper {
        program::check(&program)?;
    }
    Setup::open(args.output.as_deref())?.run(args, &program)
}

/// Why a program was not run, or not to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// There is no such program.
    NotFound(OsString),
    /// Its file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// It is a script, or another file that starts programs.
    NotABinary(PathBuf),
    /// It was built without DMD.
    NoDmd(PathBuf),
    /// The folder for its snapshots cannot be used.
    Folder(PathBuf, io::Error),
    /// It cannot be started.
    Start(PathBuf, io::Error),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::NotFound(name) => {
                write!(out, "{}: no such program, here or in $PATH", name.display())
            }
            RunError::Unreadable(path, error) => write!(out, "{}: {error}", path.display()),
            RunError::NotABinary(path) => write!(
                out,
                "{}: not a program but a file that starts one; name the program, or say --wrapper",
                path.display()
            ),
            RunError::NoDmd(path) => write!(
                out,
                "{}: this program has no DMD; add it to its dependencies (cargo add dmd) and this line to its main.rs:\n\n    \
                 dmd::global_allocator!();\n\n(if the program only starts another that has it, say --wrapper)",
                path.display()
            ),
            RunError::Folder(path, error) => {
                write!(out, "{}: {error}; name another with --output", path.display())
            }
            RunError::Start(path, error) => {
                write!(out, "{}: cannot be started: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Unreadable(_, error)
            | RunError::Folder(_, error)
            | RunError::Start(_, error) => Some(error),
            RunError::NotFound(_) | RunError::NotABinary(_) | RunError::NoDmd(_) => None,
        }
    }
}

/// The first line of what is shown: which moment it is of.
///
/// # Errors
///
/// Those of `out`.
pub fn write_heading(ran: &Ran, snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let count = ran.count(snapshot.pid);
    let of = if count == 1 {
        "the only snapshot".to_owned()
    } else {
        format!("one of {count} snapshots")
    };
    writeln!(
        out,
        "Snapshot of process {} {}, {:.1} s after the start ({of})",
        snapshot.pid,
        snapshot.moment,
        snapshot.after.as_secs_f64()
    )?;
    if snapshot.is_at_exit() {
        writeln!(
            out,
            "Only the state at exit was seen, when the program's locals are gone: use --every or --at-peak, or have it \
             call memreport::snapshot().save(…)"
        )?;
    }
    Ok(())
}

/// How the program ended, if not well: a sentence, and the exit code to hand on.
#[must_use]
pub fn describe_end(status: ExitStatus) -> Option<(String, u8)> {
    use std::os::unix::process::ExitStatusExt;
    if status.success() {
        return None;
    }
    match (status.code(), status.signal()) {
        (Some(code), _) => Some((
            format!("the program ended with exit code {code}"),
            u8::try_from(code).unwrap_or(1),
        )),
        (None, Some(signal)) => {
            let code = u8::try_from(128 + signal).unwrap_or(255);
            Some((format!("the program was ended by signal {signal}"), code))
        }
        (None, None) => Some(("nobody knows how the program ended".to_owned(), 1)),
    }
}
