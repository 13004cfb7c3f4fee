//! The world in which the documents' commands run: small programs, and files that they have left.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::document;

/// A command that takes longer is ended.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A folder that is removed with this value.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command line program, and files of each kind.
pub(crate) struct Fixtures {
    folder: Folder,
}

impl Fixtures {
    /// Links `about-memory`, and builds it first if it is missing.
    pub(crate) fn program_only() -> Self {
        // A socket's path has little room, so the folder has a short name.
        let number = std::process::id();
        let name = format!("mr-guide-{number}-{:?}", std::thread::current().id());
        let name: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(folder.0.join("bin")).expect("a folder");
        let programs = Path::new(env!("CARGO_BIN_EXE_held")).parent().expect("a folder");
        let program = programs.join("about-memory");
        // `cargo test --workspace` has built it. To build it again would build all it needs, with
        // other features.
        if !program.exists() {
            build();
        }
        symlink(program, folder.0.join("bin/about-memory")).expect("a link");
        Fixtures { folder }
    }

    /// Makes all files. Dumps get their symbols once, so that no command looks them up again.
    pub(crate) fn make() -> Self {
        let fixtures = Fixtures::program_only();
        let folder = fixtures.folder.0.join("files");
        private(&folder);
        let subject = |name: &str, mode: &str, report: &str| {
            let mut command = Command::new(name);
            succeeds(command.arg(report).env("DMD", mode).current_dir(&folder));
        };
        subject(env!("CARGO_BIN_EXE_held"), "--times=yes", "heap.json.gz");
        subject(env!("CARGO_BIN_EXE_held"), "--mode=scan", "held.json");
        let mut indexer = Indexer::start(&fixtures, &folder);
        let save = |number: u32, file: &str| {
            let mut command = fixtures.about_memory(&folder);
            command.args(["snapshot", &number.to_string(), "-o", file, "--dump"]);
            succeeds(&mut command);
        };
        save(indexer.pid(), "before.json.gz");
        indexer.grow();
        save(indexer.pid(), "after.json.gz");
        drop(indexer);
        for dump in ["heap.dmd.json.gz", "held.dmd.json", "before.dmd.json.gz", "after.dmd.json.gz"]
        {
            let mut command = fixtures.about_memory(&folder);
            succeeds(command.args(["symbolicate", dump, "-o", dump]));
        }
        let mut record = fixtures.about_memory(&folder);
        record.args(["record", "-o", "leak.rec", "--", env!("CARGO_BIN_EXE_leaking"), "0.3"]);
        succeeds(record.env("DMD", "--mode=live"));
        fs::create_dir(folder.join("dumps")).expect("a folder");
        for (dump, name) in [("before", "heap-1"), ("after", "heap-2")] {
            let target = folder.join(format!("dumps/{name}.dmd.json.gz"));
            fs::copy(folder.join(format!("{dump}.dmd.json.gz")), target).expect("a copy");
        }
        let budget = "# Of the guide.\n[ceilings]\n\"explicit\" = \"4GB\"\n";
        fs::write(folder.join("budget.toml"), budget).expect("a file");
        fixtures
    }

    /// Prepares a call of `about-memory`.
    fn about_memory(&self, folder: &Path) -> Command {
        let mut command = Command::new(self.folder.0.join("bin/about-memory"));
        command.current_dir(folder).env("XDG_RUNTIME_DIR", folder).stdin(Stdio::null());
        command
    }
}

/// Builds `about-memory`, where the tests of this package run alone.
fn build() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "about-memory"]);
    cargo.args((!cfg!(debug_assertions)).then_some("--release"));
    let status = cargo.current_dir(document::root()).status().expect("cargo runs the tests");
    assert!(status.success(), "about-memory cannot be built");
}

/// Makes a hard link, so that a process has the name of the link, or else a copy.
///
/// Another process writes the copy: a program that this one has open for writing, and so each
/// process that another test starts meanwhile, cannot be run ("Text file busy").
fn link(from: &Path, to: &Path) {
    if fs::hard_link(from, to).is_err() {
        succeeds(Command::new("cp").arg(from).arg(to));
    }
}

fn succeeds(command: &mut Command) {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// A running program with an open socket.
struct Indexer(Child);

impl Indexer {
    fn start(fixtures: &Fixtures, folder: &Path) -> Self {
        let program = folder.join("indexer");
        link(Path::new(env!("CARGO_BIN_EXE_served")), &program);
        let mut command = Command::new(program);
        command.arg("name=indexer").env("DMD", "1");
        command.current_dir(folder).env("XDG_RUNTIME_DIR", folder);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut indexer = Indexer(child.expect("cargo has built it"));
        // It prints the path of its socket once it listens.
        let mut line = String::new();
        let out = indexer.0.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("it prints a line");
        assert!(line.ends_with(".sock\n"), "{line} in {}", fixtures.folder.0.display());
        indexer
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Makes it ten megabytes bigger.
    fn grow(&mut self) {
        let stdin = self.0.stdin.as_mut().expect("a pipe");
        stdin.write_all(b"x").expect("it reads");
        std::thread::sleep(Duration::from_millis(300));
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A folder with all files, in which the commands of one chapter run in their order.
pub(crate) struct World<'f> {
    fixtures: &'f Fixtures,
    folder: PathBuf,
    indexer: Option<Indexer>,
}

impl<'f> World<'f> {
    pub(crate) fn new(fixtures: &'f Fixtures, chapter: &str) -> Self {
        let name: String = chapter.chars().filter(char::is_ascii_alphanumeric).collect();
        let folder = fixtures.folder.0.join(name.trim_start_matches("docsguidesrc"));
        copy(&fixtures.folder.0.join("files"), &folder);
        link(Path::new(env!("CARGO_BIN_EXE_leaking")), &folder.join("my-program"));
        World { fixtures, folder, indexer: None }
    }

    /// Runs a command by the shell.
    pub(crate) fn run(&mut self, command: &document::Command) -> Result<(), String> {
        let output = self.answer(&command.text)?;
        match output.status.code() {
            Some(code) if code == command.status => Ok(()),
            _ => {
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                let tail: Vec<&str> = said.lines().rev().take(12).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                Err(format!("{}, not {}:\n{}", output.status, command.status, tail.join("\n")))
            }
        }
    }

    /// Returns what a command prints.
    pub(crate) fn answer(&mut self, text: &str) -> Result<Output, String> {
        let mut text = text.to_owned();
        if ["4711", "indexer", "about-memory ps"].iter().any(|word| text.contains(word)) {
            if self.indexer.is_none() {
                let _ = fs::remove_file(self.folder.join("indexer"));
                self.indexer = Some(Indexer::start(self.fixtures, &self.folder));
            }
            let number = self.indexer.as_ref().map_or(0, Indexer::pid);
            text = text.replace("4711", &number.to_string());
        }
        if text.contains("about-memory log") {
            return self.shell_while_growing(&text);
        }
        let mut output = self.shell(&text)?;
        // On a busy machine a program may need longer than its client waits.
        if String::from_utf8_lossy(&output.stderr).contains("did not answer in time") {
            output = self.shell(&text)?;
        }
        Ok(output)
    }

    /// Runs a command while the running program allocates.
    fn shell_while_growing(&mut self, text: &str) -> Result<Output, String> {
        let mut indexer = self.indexer.take();
        let output = std::thread::scope(|scope| {
            let growing = indexer.as_mut();
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(1000));
                growing.map(Indexer::grow)
            });
            self.shell(text)
        });
        self.indexer = indexer;
        output
    }

    fn shell(&self, text: &str) -> Result<Output, String> {
        let streams = ["out", "err"].map(|name| self.folder.join(format!("stream.{name}")));
        let [out, err] = streams.each_ref().map(|path| File::create(path).expect("a file"));
        let bin = self.fixtures.folder.0.join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.arg("-c").arg(text).current_dir(&self.folder);
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.env("XDG_RUNTIME_DIR", &self.folder).env_remove("DMD").stdin(Stdio::null());
        let mut child = command.stdout(out).stderr(err).spawn().map_err(|it| it.to_string())?;
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            if begin.elapsed() > TIMEOUT {
                let _ = child.kill();
                return Err("it does not end".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let [stdout, stderr] = streams.map(|path| fs::read(path).unwrap_or_default());
        Ok(Output { status, stdout, stderr })
    }
}

/// Makes a folder that only its owner may enter, as sockets want it.
fn private(folder: &Path) {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder");
}

fn copy(from: &Path, to: &Path) {
    private(to);
    for entry in fs::read_dir(from).expect("the folder is there").flatten() {
        let target = to.join(entry.file_name());
        let kind = entry.file_type().expect("it has a type");
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// The help texts of commands, by the words of the command.
type Helps = BTreeMap<Vec<String>, Option<String>>;

/// Checks that `about-memory` has this command with these options.
pub(crate) fn exists(
    call: &[String],
    fixtures: &Fixtures,
    helps: &mut Helps,
) -> Result<(), String> {
    let is_name = |word: &&String| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let mut words: Vec<String> = call.iter().take_while(is_name).take(2).cloned().collect();
    if words.len() == 2 && !matches!(words[0].as_str(), "heap" | "page") {
        words.truncate(1);
    }
    if words.first().is_some_and(|word| matches!(word.as_str(), "help" | "indexer")) {
        return Ok(());
    }
    let help = helps.entry(words.clone()).or_insert_with(|| {
        let mut command = fixtures.about_memory(&fixtures.folder.0);
        let output = command.args(&words).arg("--help").output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    });
    let Some(help) = help else { return Err(format!("no command {}", words.join(" "))) };
    for option in call.iter().filter(|word| word.starts_with("--")) {
        let name = option.split_once('=').map_or(&**option, |(name, _)| name);
        let name = name.trim_end_matches([',', '.', ':']);
        // `track` takes the words of `$DMD`.
        let is_known = help.contains(name) || words == ["track"];
        if !is_known {
            return Err(format!("{} has no {name}", words.join(" ")));
        }
    }
    Ok(())
}
