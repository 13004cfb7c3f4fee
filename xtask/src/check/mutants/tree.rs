//! A copy of the workspace in which mutants are planted, and its builds.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::list::Mutant;
use super::programs::Program;
use super::switches;
use crate::build;
use crate::failure::Failure;

/// The first files of the packages, which get the module that tells which switches are on.
const ROOTS: [&str; 6] = [
    "memreport/src/lib.rs",
    "dmd/src/lib.rs",
    "dmd-analysis/src/lib.rs",
    "about-memory/src/lib.rs",
    "about-memory/src/main.rs",
    "memreport-derive/src/lib.rs",
];

/// Linking the packages takes half as long without the types of their variables.
const LINES: &str = "profile.dev.debug='line-tables-only'";

/// A test of symbols compares those of its own program with the ones in the process.
const OWN_TYPES: &str = "profile.dev.package.memreport-analysis.debug=1";

/// Types of the programs that are tested are looked up, and of the tests of assertions.
const TYPES: [&str; 2] = [
    "profile.dev.package.memreport-tests.debug=true",
    "profile.dev.package.memreport-dmd.debug=true",
];

/// Errors that a mutant has wherever it is planted: a trait that its type does not have, another
/// type, an operator without an impl, and a name that is not there.
const OWN_ERRORS: [&str; 6] = ["E0277", "E0308", "E0369", "E0368", "E0600", "E0599"];

/// A copy of the workspace. Cargo builds again only what changes.
#[derive(Debug)]
pub(super) struct Tree {
    folder: PathBuf,
    target: PathBuf,
    /// The files that mutants change, as they were copied: the workspace may change meanwhile.
    originals: HashMap<String, String>,
}

/// A mutant that could not be built with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// It compiles nowhere.
    Unviable,
    /// It has no switch: it is built alone.
    Single,
}

/// The tests of a package that are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    /// Those in its library.
    Library,
    All,
}

/// A build of several mutants.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) programs: Vec<Program>,
    /// The mutants that are not in it.
    pub(super) apart: BTreeMap<usize, Apart>,
}

/// The messages of a build.
#[derive(Debug, Default)]
struct Messages {
    programs: Vec<Program>,
    errors: Vec<CompileError>,
}

#[derive(Debug)]
struct CompileError {
    code: String,
    file: String,
    line: usize,
    text: String,
}

impl Tree {
    /// Copies the files of the workspace that have changed since the last copy.
    pub(super) fn copy(mutants: &[Mutant]) -> Result<Tree, Failure> {
        let folder = build::root().join("target/mutants");
        let (folder, target) = (folder.join("tree"), folder.join("build"));
        let mut tree = Tree { folder, target, originals: HashMap::new() };
        for file in ROOTS.into_iter().chain(mutants.iter().map(|mutant| mutant.file.as_str())) {
            if !tree.originals.contains_key(file) {
                let text = fs::read_to_string(build::root().join(file))?;
                tree.originals.insert(file.to_owned(), text);
            }
        }
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = git.current_dir(build::root()).output()?;
        if !listed.status.success() {
            return Err(String::from_utf8_lossy(&listed.stderr).into());
        }
        for file in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let from = build::root().join(file);
            if from.is_file() {
                tree.write(file, &fs::read(&from)?)?;
                fs::set_permissions(tree.folder.join(file), fs::metadata(&from)?.permissions())?;
            }
        }
        Ok(tree)
    }

    /// Writes a file, but leaves one of the same content as it is, so that cargo sees no change.
    fn write(&self, file: &str, content: &[u8]) -> Result<(), Failure> {
        let to = self.folder.join(file);
        if fs::read(&to).is_ok_and(|old| old == content) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))?;
        Ok(fs::write(&to, content)?)
    }

    /// Builds the tests with all mutants behind switches. Those that cannot be are left out.
    pub(super) fn build_switched(&self, mutants: &[Mutant]) -> Result<Built, Failure> {
        let mut apart = BTreeMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            // A macro runs inside the compiler. The common build has no jemalloc.
            if mutant.package == "memreport-derive" || mutant.file.contains("/jemalloc") {
                apart.insert(number, Apart::Single);
            }
        }
        loop {
            let lines = self.write_switches(mutants, &mut apart)?;
            let messages = self.build(&super::ALL_TESTS)?;
            if messages.errors.is_empty() {
                return Ok(Built { programs: messages.programs, apart });
            }
            let before = apart.len();
            for error in &messages.errors {
                set_apart(error, mutants, &lines, &mut apart);
            }
            if apart.len() == before {
                let texts: Vec<&str> = messages.errors.iter().map(|e| e.text.as_str()).collect();
                return Err(texts.join("\n").into());
            }
        }
    }

    /// Writes all files with switches, and returns the lines of the mutants by file.
    fn write_switches(
        &self,
        mutants: &[Mutant],
        apart: &mut BTreeMap<usize, Apart>,
    ) -> Result<Lines, Failure> {
        let mut files: HashMap<&str, Vec<(usize, &Mutant)>> = HashMap::new();
        for file in ROOTS.into_iter().chain(mutants.iter().map(|mutant| mutant.file.as_str())) {
            files.entry(file).or_default();
        }
        for (number, mutant) in mutants.iter().enumerate() {
            if !apart.contains_key(&number) {
                files.entry(&mutant.file).or_default().push((number, mutant));
            }
        }
        let mut lines = Lines::new();
        for (file, mutants) in files {
            let mut switched = switches::insert(&self.originals[file], &mutants)?;
            for (number, _) in mutants {
                if !switched.lines.iter().any(|(with_switch, _)| *with_switch == number) {
                    apart.insert(number, Apart::Single);
                }
            }
            if ROOTS.contains(&file) && !file.starts_with("memreport-derive") {
                switched.text.push_str(switches::MODULE);
            }
            self.write(file, switched.text.as_bytes())?;
            lines.insert(file.to_owned(), switched.lines);
        }
        Ok(lines)
    }

    /// Builds a package's own tests with a mutant alone. Returns `None` if it does not compile.
    pub(super) fn build_single(
        &self,
        mutant: &Mutant,
        targets: Targets,
    ) -> Result<Option<Vec<Program>>, Failure> {
        let original = &self.originals[&mutant.file];
        self.write(&mutant.file, switches::replace(original, mutant).as_bytes())?;
        let mut tests = super::own_tests(&mutant.package).to_vec();
        tests.retain(|word| targets == Targets::All || *word != "--test=*");
        let messages = self.build(&tests)?;
        self.write(&mutant.file, original.as_bytes())?;
        Ok(messages.errors.is_empty().then_some(messages.programs))
    }

    /// Removes all mutants.
    pub(super) fn restore(&self) -> Result<(), Failure> {
        self.originals.iter().try_for_each(|(file, text)| self.write(file, text.as_bytes()))
    }

    fn build(&self, tests: &[&str]) -> Result<Messages, Failure> {
        let mut cargo = build::cargo();
        cargo.current_dir(&self.folder).args(["build", "--tests", "--keep-going"]).args(tests);
        for config in [LINES, OWN_TYPES].into_iter().chain(TYPES) {
            cargo.args(["--config", config]);
        }
        cargo.args(["--message-format=json", "--quiet", "--target-dir"]).arg(&self.target);
        cargo.env("CARGO_INCREMENTAL", "1");
        let output = cargo.stderr(Stdio::piped()).output()?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let mut messages = Messages::default();
        for message in lines.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            messages.add(&message, &self.folder);
        }
        if !output.status.success() && messages.errors.is_empty() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(messages)
    }
}

/// The lines of mutants, by file.
type Lines = HashMap<String, Vec<(usize, std::ops::RangeInclusive<usize>)>>;

impl Messages {
    fn add(&mut self, message: &Value, folder: &Path) {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if message["reason"] == "compiler-artifact" && message["profile"]["test"] == true {
            let manifest = PathBuf::from(word(&message["manifest_path"]));
            let package = manifest.parent().unwrap_or(folder).to_path_buf();
            self.programs.extend(message["executable"].as_str().map(|path| Program {
                path: path.into(),
                name: word(&message["target"]["name"]),
                package,
            }));
        }
        let error = &message["message"];
        if message["reason"] == "compiler-message" && error["level"] == "error" {
            let spans = error["spans"].as_array();
            let primary = spans.and_then(|spans| spans.iter().find(|it| it["is_primary"] == true));
            // The last message of a crate is their number, without a place.
            self.errors.extend(primary.map(|span| CompileError {
                code: word(&error["code"]["code"]),
                file: word(&span["file_name"]),
                line: span["line_start"].as_u64().and_then(|it| it.try_into().ok()).unwrap_or(0),
                text: word(&error["rendered"]),
            }));
        }
    }
}

/// Sets those mutants apart that an error is about: those of its line, or else of its file.
fn set_apart(
    error: &CompileError,
    mutants: &[Mutant],
    lines: &Lines,
    apart: &mut BTreeMap<usize, Apart>,
) {
    let of_file = lines.get(&error.file).map_or(&[][..], Vec::as_slice);
    let of_line: Vec<usize> = of_file
        .iter()
        .filter(|(_, lines)| lines.contains(&error.line))
        .map(|(number, _)| *number)
        .collect();
    for number in &of_line {
        // Elsewhere, a function may return another type of the same trait.
        let is_own = OWN_ERRORS.contains(&error.code.as_str())
            && !mutants[*number].returns.contains("impl ")
            && of_line.len() == 1;
        apart.entry(*number).or_insert(if is_own { Apart::Unviable } else { Apart::Single });
    }
    if of_line.is_empty() {
        for (number, _) in of_file {
            apart.entry(*number).or_insert(Apart::Single);
        }
    }
}
