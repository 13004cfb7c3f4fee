//! Compiles subjects, and runs programs with and without the library.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use about_memory::command::launch::preload::Preload;

/// A folder for the files of one test, removed at its end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dmd-preload-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a place for files");
        Scratch(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the path of the library, which is written once.
pub(crate) fn library() -> &'static Path {
    static WRITTEN: OnceLock<Preload> = OnceLock::new();
    WRITTEN.get_or_init(|| Preload::write().expect("a place for the library")).path()
}

/// Returns the path of a program, or prints that the test is not run.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = if name.starts_with('/') { Some("/".into()) } else { std::env::var_os("PATH") };
    let path = path.unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        not_run(&format!("{name} is not installed"));
    }
    found
}

/// Prints that a test is not run, and why.
#[expect(clippy::print_stdout, reason = "the user must learn which tests did not run")]
fn not_run(reason: &str) {
    println!("not run: {reason}");
}

/// Compiles a subject, or prints that the test is not run.
pub(crate) fn compile(
    scratch: &Scratch,
    source: &str,
    name: &str,
    options: &[&str],
) -> Option<PathBuf> {
    compile_by(if source.ends_with("cpp") { "c++" } else { "cc" }, scratch, source, name, options)
}

/// Compiles a subject by this compiler, or prints that the test is not run.
pub(crate) fn compile_by(
    compiler: &str,
    scratch: &Scratch,
    source: &str,
    name: &str,
    options: &[&str],
) -> Option<PathBuf> {
    let compiler = installed(compiler)?;
    let program = scratch.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/subjects").join(source);
    // Compilers leave out pairs of malloc and free.
    let output = Command::new(compiler)
        .args(["-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .args(options)
        .output()
        .expect("the compiler starts");
    if output.status.success() {
        return Some(program);
    }
    not_run(&format!("the compiler failed: {}", String::from_utf8_lossy(&output.stderr)));
    None
}

/// A way of running a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum With {
    Nothing,
    /// The library, and this `$DMD`.
    Library(&'static str),
}

/// All states of the library: asleep, and each kind of plan.
pub(crate) const STATES: [&str; 6] = [
    "",
    "1",
    "--stacks=none",
    "--stacks=partial",
    "--mode=cumulative",
    "--mode=profile --sample-bytes=4K",
];

/// Prepares a run of a program.
pub(crate) fn command(program: impl AsRef<OsStr>, with: With) -> Command {
    let mut command = Command::new(program);
    for name in ["DMD", "LD_PRELOAD", "MEMREPORT_CHILD_OF", "MEMREPORT_RUN", "MEMREPORT_RECORD"] {
        command.env_remove(name);
    }
    if let With::Library(options) = with {
        command.env("LD_PRELOAD", library()).env("DMD", options);
    }
    command
}

/// Runs a command to its end, within two minutes.
pub(crate) fn output(mut command: Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Asserts that a program prints the same and ends alike with the library, in each of its states.
/// A program with a malloc of its own may be told that nothing is tracked.
#[track_caller]
pub(crate) fn assert_same(of: impl Fn(With) -> Command, states: &[&'static str]) {
    let bare = output(of(With::Nothing));
    for state in states {
        let tracked = output(of(With::Library(state)));
        let named = |output: &Output| {
            let [out, errors] = [&output.stdout, &output.stderr]
                .map(|text| String::from_utf8_lossy(text).into_owned());
            let is_note = |line: &&str| line.starts_with("DMD[") && line.contains("tracks nothing");
            let errors: Vec<_> = errors.lines().filter(|line| !is_note(line)).collect();
            (out, errors.join("\n"), output.status)
        };
        let (bare, tracked) = (named(&bare), named(&tracked));
        if bare != tracked {
            let command = of(With::Library(state));
            let differing = bare.0.lines().zip(tracked.0.lines()).find(|(one, other)| one != other);
            panic!(
                "{command:?}\n{differing:?}\n{:?}\n{:?}\n{}\n{}",
                bare.2, tracked.2, bare.1, tracked.1
            );
        }
    }
}
