//! Test programs, their tests, and the mutants that each test reaches.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;

/// The most mutants of one build: a byte each in a page.
pub(super) const MOST: usize = 4096;

/// The longest time for a test without a mutant, in seconds. Slower ones are left out.
const SLOW: f64 = 20.0;

/// The longest time for a quick test, in seconds.
const QUICK: f64 = 0.5;

/// The most data memory of a test's processes, in KiB: defects may allocate without end.
const MOST_MEMORY: &str = "8388608";

/// A program of tests.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// The folder of its package.
    pub(super) package: PathBuf,
}

/// A test, which runs in a process of its own.
#[derive(Clone, Debug)]
pub(super) struct Test {
    program: Program,
    name: String,
    /// Its time without a mutant.
    seconds: f64,
    /// The mutants that it reaches.
    reached: Vec<usize>,
}

/// The end of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Passed,
    Failed,
    TimedOut,
}

/// The results of tests.
#[derive(Debug)]
struct Ran {
    end: End,
    /// A byte for each mutant: `1` if its switch was read.
    reached: Vec<u8>,
    /// Those that failed, without those that ended their process.
    failed: Vec<String>,
}

impl Program {
    /// Returns the names of its tests, without the ignored ones; none if it lists none.
    fn tests(&self) -> Result<Vec<String>, Failure> {
        let list = |words: &[&str]| -> Result<Vec<String>, Failure> {
            let output = self.command(&[]).args(words).output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
            Ok(names.map(str::to_owned).collect())
        };
        let ignored = list(&["--list", "--format", "terse", "--ignored"])?;
        let mut all = list(&["--list", "--format", "terse"])?;
        all.retain(|name| !ignored.contains(name));
        Ok(all)
    }

    /// Runs tests with a mutant, or none, and gives up after a time.
    fn run(&self, tests: &[&str], mutant: Option<usize>, seconds: f64) -> Result<Ran, Failure> {
        let file = |name| std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let (switches, printed) = (file("mutants"), file("mutants-printed"));
        let mut bytes = vec![b'0'; MOST];
        if let Some(mutant) = mutant {
            bytes[mutant] = b'2';
        }
        fs::write(&switches, &bytes)?;
        let script = "ulimit -c 0 -d \"$0\"; exec timeout --signal=KILL \"$@\"";
        let seconds = format!("{seconds:.0}");
        let mut command = self.command(&["sh", "-c", script, MOST_MEMORY, &seconds]);
        command.arg("--exact").args(tests).arg("--test-threads=2");
        // A pipe would stay open as long as any process that a test leaves behind.
        command.stdout(fs::File::create(&printed)?).stderr(Stdio::null());
        let status = command.env("PLANTED_DEFECTS", &switches).status()?;
        let reached = fs::read(&switches)?;
        let printed_text = String::from_utf8_lossy(&fs::read(&printed)?).into_owned();
        for file in [switches, printed] {
            let _ = fs::remove_file(file);
        }
        let failed = printed_text.lines().filter_map(|line| {
            line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned)
        });
        // `timeout` ends itself with the signal too.
        let end = match status.code() {
            Some(0) => End::Passed,
            Some(124 | 137) | None => End::TimedOut,
            _ => End::Failed,
        };
        Ok(Ran { end, reached, failed: failed.collect() })
    }

    /// Returns a command that runs the program as cargo does, after some words.
    fn command(&self, before: &[&str]) -> Command {
        let mut command = match before {
            [] => Command::new(&self.path),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.path);
                command
            }
        };
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        let folders = self.path.ancestors().skip(1).take(2);
        let found = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let found = std::env::split_paths(&found).collect::<Vec<_>>();
        let folders = folders.map(PathBuf::from).chain(found);
        if let Ok(folders) = std::env::join_paths(folders) {
            command.env("LD_LIBRARY_PATH", folders);
        }
        command.env("INSTA_UPDATE", "no").env("INSTA_FORCE_PASS", "0");
        // Reading the names of a failure takes longer than most tests.
        command.env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null());
        command
    }
}

/// Tests of one program, which run in one process.
#[derive(Debug)]
pub(super) struct Group<'a> {
    program: &'a Program,
    names: Vec<&'a str>,
    seconds: f64,
}

impl Group<'_> {
    /// Returns tests by program, the quick ones apart from the others, the quickest group first.
    pub(super) fn of<'a>(tests: impl Iterator<Item = &'a Test>) -> Vec<Group<'a>> {
        let mut groups: Vec<(bool, Group<'a>)> = Vec::new();
        for Test { program, name, seconds, .. } in tests {
            let is_quick = *seconds < QUICK;
            let is_it = |(quick, group): &&mut (bool, Group<'a>)| {
                *quick == is_quick && group.program.path == program.path
            };
            if let Some((_, group)) = groups.iter_mut().find(is_it) {
                group.names.push(name);
                group.seconds += seconds;
            } else {
                groups.push((is_quick, Group { program, names: vec![name], seconds: *seconds }));
            }
        }
        let mut groups: Vec<Group<'a>> = groups.into_iter().map(|(_, group)| group).collect();
        groups.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        groups
    }

    /// Runs them with a mutant. A failure counts if the tests that fail pass without the mutant.
    pub(super) fn end_with(&self, mutant: usize) -> Result<End, Failure> {
        let seconds = self.seconds.mul_add(2.0, 15.0);
        let ran = self.program.run(&self.names, Some(mutant), seconds)?;
        if ran.end == End::Passed {
            return Ok(End::Passed);
        }
        let failed: Vec<&str> = ran.failed.iter().map(String::as_str).collect();
        let failed = if failed.is_empty() { &self.names } else { &failed };
        let without = self.program.run(failed, None, seconds)?;
        Ok(if without.end == End::Passed { ran.end } else { End::Passed })
    }

    /// Runs them in a build of a mutant alone. They must fail twice.
    pub(super) fn end_in(&self, programs: &[Program]) -> Result<End, Failure> {
        let own = self.program;
        let is_it = |it: &&Program| it.name == own.name && it.package == own.package;
        let Some(program) = programs.iter().find(is_it) else { return Ok(End::Passed) };
        let seconds = self.seconds.mul_add(2.0, 15.0);
        match program.run(&self.names, None, seconds)?.end {
            End::Passed => Ok(End::Passed),
            _ => Ok(program.run(&self.names, None, seconds)?.end),
        }
    }
}

impl Test {
    /// Returns whether it belongs to a package's folder.
    pub(super) fn is_of(&self, folder: &str) -> bool {
        self.program.package.ends_with(folder)
    }

    pub(super) fn is_in(&self, program: &Program) -> bool {
        self.program.path == program.path
    }

    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(super) fn reaches(&self, mutant: usize) -> bool {
        self.reached.binary_search(&mutant).is_ok()
    }
}

/// The tests of some programs.
#[derive(Debug, Default)]
pub(super) struct Tests {
    /// Those that pass without a mutant, the quickest first.
    pub(super) tests: Vec<Test>,
    /// The names of those that fail or are slow.
    pub(super) left_out: Vec<String>,
}

impl Tests {
    /// Runs all tests of programs without a mutant.
    pub(super) fn of(programs: &[&Program]) -> Result<Tests, Failure> {
        let mut all = Tests::default();
        for program in programs {
            for name in program.tests()? {
                let start = Instant::now();
                let ran = program.run(&[&name], None, SLOW)?;
                if ran.end == End::Passed {
                    let places = 0..ran.reached.len();
                    let reached = places.filter(|place| ran.reached[*place] == b'1').collect();
                    let seconds = start.elapsed().as_secs_f64();
                    let program = Program::clone(program);
                    all.tests.push(Test { program, name, seconds, reached });
                } else {
                    all.left_out.push(format!("{} {name}", program.name));
                }
            }
        }
        all.add(Vec::new());
        Ok(all)
    }

    /// Adds others, and sorts them.
    pub(super) fn add(&mut self, others: Vec<Test>) {
        self.tests.extend(others);
        self.tests.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    }
}
