//! The targets. Each takes any bytes and may refuse them; it must not panic, hang, or take much
//! memory.
#![expect(clippy::missing_panics_doc, reason = "a panic is what fuzzing looks for")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::LazyLock;

use about_memory::report::filter::Filter;
use about_memory::{Cli, Context};
use clap::Parser;
use memreport::serve::protocol::{Request, Status, parse_header};
use memreport_analysis::census::Breakdown;
use memreport_analysis::read::read_slice;
use memreport_analysis::symbols::{Options, Symboliser};
use tempfile::TempDir;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, which is the name of its folder of seeds.
    pub name: &'static str,
    /// Reads the bytes.
    pub run: fn(&[u8]),
}

/// Every target.
pub const ALL: [Target; 9] = [
    Target { name: "report", run: report },
    Target { name: "dump", run: dump },
    Target { name: "recording", run: recording },
    Target { name: "census", run: census },
    Target { name: "filter", run: filter },
    Target { name: "protocol", run: protocol },
    Target { name: "module", run: module },
    Target { name: "breakpad", run: breakpad },
    Target { name: "core", run: core },
];

/// The commands that read a report. `@` is the file.
const OF_REPORTS: [&[&str]; 8] = [
    &["show", "@", "--verbose"],
    &["show", "@", "--json"],
    &["show", "@", "--min", "0"],
    &["show", "@", "--filter", "e"],
    &["diff", "@", "@"],
    &["metrics", "@"],
    &["page", "build", "@", "-o", "@.out"],
    &["@"],
];

/// The commands that read a dump.
const OF_DUMPS: [&[&str]; 18] = [
    &["heap", "records", "@"],
    &["heap", "records", "@", "--json"],
    &["heap", "tree", "@", "--by", "type,stack"],
    &["heap", "tree", "@", "--by", "reporter,thread,scope", "--json"],
    &["heap", "census", "@"],
    &["heap", "census", "@", "--by", "type,size,age,scope"],
    &["heap", "coverage", "@"],
    &["heap", "diff", "@", "@"],
    &["tree", "@"],
    &["tree", "@", "--min", "0", "--json"],
    &["heap", "dominators", "@"],
    &["heap", "dominators", "@", "--by", "type", "--json"],
    &["heap", "why-alive", "@", "--type-contains", "e"],
    &["heap", "why-alive", "@", "--block", "0x55abc1ef2300"],
    &["export", "@", "--to", "pprof", "-o", "@.out"],
    &["export", "@", "--to", "firefox-profiler", "-o", "@.out"],
    &["export", "@", "--to", "memory-infra", "-o", "@.out"],
    &["export", "@", "--to", "dhat", "-o", "@.out"],
];

/// The commands that read a recording.
const OF_RECORDINGS: [&[&str]; 8] = [
    &["recording", "@"],
    &["recording", "@", "--json"],
    &["recording", "@", "--which", "freed"],
    &["recording", "@", "--which", "peak"],
    &["heap", "tree", "@", "--at", "peak"],
    &["export", "@", "--to", "firefox-profiler", "-o", "@.out"],
    &["export", "@", "--to", "massif", "-o", "@.out"],
    &["export", "@", "--to", "pprof", "-o", "@.out"],
];

/// The commands that read a core file.
const OF_CORES: [&[&str]; 4] = [
    &["inspect", "@"],
    &["inspect", "@", "--json"],
    &["inspect", "@", "--blocks"],
    &["inspect", "@", "--save", "@.out"],
];

/// The folder for inputs of commands, which read files. In memory where there is such a place.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    made.expect("a folder for the inputs")
});

/// Runs a command of `about-memory` that reads reports, chosen by the bytes.
pub fn report(bytes: &[u8]) {
    command(&OF_REPORTS, bytes);
}

/// Runs a command that reads dumps, chosen by the bytes.
pub fn dump(bytes: &[u8]) {
    command(&OF_DUMPS, bytes);
}

/// Runs a command that reads recordings, chosen by the bytes.
pub fn recording(bytes: &[u8]) {
    command(&OF_RECORDINGS, bytes);
}

/// Runs a command that reads core files.
pub fn core(bytes: &[u8]) {
    command(&OF_CORES, bytes);
}

/// Parses a breakdown as words, and as JSON, which is written and parsed again.
pub fn census(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for parsed in [Breakdown::of_words(text).ok(), text.parse::<Breakdown>().ok()] {
        let Some(breakdown) = parsed else { continue };
        let json = breakdown.to_json();
        let again = json.parse::<Breakdown>().expect("what is written can be read");
        assert_eq!(again.to_json(), json);
    }
}

/// Compiles a regular expression and matches it against paths.
///
/// Expressions with several quantifiers are only compiled: matching may take exponential time, as
/// in Firefox, and its user can stop it.
pub fn filter(bytes: &[u8]) {
    let Ok(pattern) = std::str::from_utf8(bytes) else { return };
    if pattern.matches(['*', '+', '?', '{']).count() > 1 {
        return drop(black_box(Filter::regex(pattern)));
    }
    for filter in [Some(Filter::text(pattern)), Filter::regex(pattern).ok()].into_iter().flatten() {
        for path in ["", "explicit/js/x", "explicit/http:\\\\a.b/é"] {
            black_box(filter.matches(path));
        }
    }
}

/// Parses a request, an answer and a status.
pub fn protocol(bytes: &[u8]) {
    if let Ok(request) = Request::parse(bytes) {
        let line = request.line();
        let again = Request::parse(line.trim_end().as_bytes());
        assert_eq!(again.as_ref(), Ok(&request), "what is written can be read");
    }
    let _ = black_box(parse_header(bytes));
    let _ = black_box(serde_json::from_slice::<Status>(bytes));
}

/// Looks up functions, lines and types in a module's file, and shows a scanned heap by its types.
pub fn module(bytes: &[u8]) {
    let path = write("module", bytes);
    look_up(&path, Options::default());
    let heap = SCAN.replace("/nowhere/fulltext", path.to_str().expect("a path of ours is UTF-8"));
    // The file is of another build.
    let heap = heap.replace("\"buildId\"", "\"formerBuildId\"");
    run(&["tree", "@", "--min", "0"], &write("heap.dmd.json", heap.as_bytes()));
}

/// A scan of a program that has the input as its file.
const SCAN: &str = include_str!("../seeds/dump/scan.json");

/// Looks up functions and lines in a symbol file of Breakpad.
pub fn breakpad(bytes: &[u8]) {
    let path = write("gone.sym", bytes);
    let mut options = Options::default();
    options.search.push(path.parent().expect("it is in the folder").to_owned());
    look_up(Path::new("/nowhere/gone"), options);
}

/// Runs one of the commands on a file of these bytes.
fn command(commands: &[&[&str]], bytes: &[u8]) {
    let path = write("input", bytes);
    // Any number that changes with the bytes.
    let number = bytes.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31) ^ usize::from(*byte));
    run(commands[number % commands.len()], &path);
}

/// Runs a command on a file.
fn run(words: &[&str], path: &Path) {
    let path = path.to_str().expect("a path of ours is UTF-8");
    let words = words.iter().map(|word| word.replace('@', path));
    let words = std::iter::once("about-memory".to_owned()).chain(words);
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let _ = cli.run(&mut Context::new(&mut out, &mut notes));
    black_box((out, notes));
}

/// Symbolicates some addresses of a module at this path, and asks for the fields of some types.
fn look_up(path: &Path, mut options: Options) {
    let path = path.to_str().expect("a path of ours is UTF-8");
    let frames: Vec<String> = [0, 0x10, 0x2f0, 0x310, 0x320, 0x1000, u64::MAX]
        .iter()
        .zip('a'..)
        .map(|(offset, key)| format!(r##""{key}":"#00: ???[{path} +0x{offset:x}]""##))
        .collect();
    let text = format!(
        r#"{{"version":5,"invocation":{{"dmdEnvVar":"1","mode":"live"}},
        "blockList":[{{"req":8,"alloc":"A"}}],
        "memreport":{{"version":1,"needs":[],"program":"{path}"}},
        "traceTable":{{"A":["a","b","c","d","e","f","g"]}},"frameTable":{{{}}}}}"#,
        frames.join(",")
    );
    let mut dump = read_slice(text.as_bytes()).expect("a dump of ours can be read");
    options.threads = Some(1);
    let mut symboliser = Symboliser::new(options);
    black_box(symboliser.symbolicate(&mut dump));
    black_box(symboliser.members(&dump, &["list".to_owned(), "node::Node".to_owned()]));
}

fn write(name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = FOLDER.path().join(name);
    fs::write(&path, bytes).expect("the folder takes the input");
    path
}
