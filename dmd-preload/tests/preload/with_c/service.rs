//! A service in Rust whose library of C leaks: two dumps lead to the function, its library and the
//! caller in Rust, everywhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::library_of_c;
use crate::dumps::about_memory;
use crate::subject::{Scratch, With, command};

const SERVICE: &str = env!("CARGO_BIN_EXE_service-with-c");

/// The usable bytes of the block that a request leaks: 30,000 and what glibc rounds up.
const LEAKED: i64 = 30_008;

/// The requests between the two dumps.
const REQUESTS: i64 = 7;

/// The stack of the leak, the outermost function first.
const STACK: [&str; 3] = ["service_with_c::main", "service_with_c::answer_request", "c_leak"];

/// A running service.
pub(crate) struct Service {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    /// The usable bytes and the number of the blocks that the library keeps.
    pub(crate) of_c: [u64; 2],
}

impl Service {
    pub(crate) fn start(library: &Path, with: With) -> Self {
        Service::of(command(SERVICE, with), library)
    }

    /// Starts it without the preloaded library.
    pub(crate) fn start_alone(library: &Path, options: &str) -> Self {
        let mut program = command(SERVICE, With::Nothing);
        program.env("DMD", options);
        Service::of(program, library)
    }

    fn of(mut program: Command, library: &Path) -> Self {
        program.arg(library).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().expect("it starts");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut service = Service { child, answers, of_c: [0; 2] };
        service.of_c = numbers(&service.answer(), "serves beside ");
        service
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Returns the bytes and blocks of the tracker's counters, and the bytes of glibc's.
    pub(crate) fn counts(&mut self) -> [u64; 3] {
        let requests = self.child.stdin.as_mut().expect("a pipe");
        requests.write_all(b"count\n").expect("it reads");
        numbers(&self.answer(), "counted ")
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("text");
        line
    }

    pub(crate) fn request(&mut self) {
        let requests = self.child.stdin.as_mut().expect("a pipe");
        requests.write_all(b"a request\n").expect("it reads");
        assert_eq!(self.answer(), "1 answered\n");
    }

    /// Takes a snapshot with its dump.
    pub(crate) fn snapshot(&self, file: &Path) {
        let pid = self.pid();
        let file = file.to_str().expect("text");
        about_memory(&["snapshot", &pid, "--dump", "-o", file]).expect("it answers");
    }

    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

/// Returns the numbers behind the words of a line.
pub(crate) fn numbers<const N: usize>(line: &str, words: &str) -> [u64; N] {
    let rest = line.strip_prefix(words).unwrap_or_else(|| panic!("{line}"));
    let numbers: Vec<u64> = rest.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
}

/// Returns the data that a page contains under a name.
fn embedded(page: &str, name: &str) -> Value {
    let start = format!("<script type=\"application/gzip\" data-name=\"{name}\">");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no {name} in the page"));
    let (text, _) = rest.split_once("</script>").expect("an end");
    let zipped = BASE64_STANDARD.decode(text).expect("base64");
    let mut json = String::new();
    GzDecoder::new(&zipped[..]).read_to_string(&mut json).expect("gzip");
    serde_json::from_str(&json).expect("JSON")
}

/// Returns the bytes of a stack in the rows of a page's heap.
fn bytes_of_rows(heap: &Value, stack: &[&str]) -> i64 {
    let calls = &heap["calls"];
    let number = |column: &Value, node: usize| {
        usize::try_from(column[node].as_u64().expect("a number")).expect("small")
    };
    let functions = |mut node: usize| {
        let mut found = Vec::new();
        loop {
            let function = number(&calls["function"], node);
            found.push(calls["functions"][function].as_str().expect("text").to_owned());
            match number(&calls["up"], node) {
                0 => break,
                up => node -= up,
            }
        }
        found.reverse();
        found
    };
    let rows = &heap["rows"];
    let of_stack = (0..rows["stack"].as_array().expect("a column").len())
        .filter(|row| functions(number(&rows["stack"], *row)) == stack);
    of_stack.map(|row| rows["bytes"][row].as_i64().expect("bytes")).sum()
}

#[test]
fn a_leak_of_a_library_is_found_in_the_difference_and_in_the_page() {
    let scratch = Scratch::new("c-service");
    let Some(library) = library_of_c(&scratch) else { return };
    let [before, after] = ["before", "after"].map(|name| scratch.join(&format!("{name}.json.gz")));
    let mut service = Service::start(&library, With::Library("1"));
    service.request();
    service.snapshot(&before);
    (0..REQUESTS).for_each(|_| service.request());
    service.snapshot(&after);
    service.end();

    let dumps = ["before", "after"].map(|name| scratch.join(&format!("{name}.dmd.json.gz")));
    let dumps = dumps.each_ref().map(|dump| dump.to_str().expect("text"));
    let (text, _) = about_memory(&["heap", "diff", dumps[0], dumps[1]]).expect("two dumps");
    let place = text.split("\n\n").nth(1).expect("a place");
    let lines: Vec<&str> = place.lines().map(str::trim).collect();
    assert!(lines[0].starts_with("+210,056 bytes in +7 blocks (from 30,008 to 240,064)"), "{text}");
    assert!(lines[1].starts_with("c_leak (") && lines[1].ends_with("libkeeping.so)"), "{text}");
    assert!(lines[2].starts_with("service_with_c::answer_request ("), "{text}");

    let (json, _) =
        about_memory(&["heap", "diff", "--json", dumps[0], dumps[1]]).expect("two dumps");
    let found: Value = serde_json::from_str(&json).expect("JSON");
    let place = &found["places"][0];
    assert_eq!(place["bytes"], REQUESTS * LEAKED, "{json}");
    assert_eq!(place["blocks"], REQUESTS, "{json}");
    let inward: Vec<&str> = STACK.iter().rev().copied().collect();
    assert_eq!(place["stack"], serde_json::json!(inward), "{json}");
    assert_eq!(place["libraries"], serde_json::json!(["libkeeping.so", null, null]), "{json}");

    let page = scratch.join("page.html");
    let files = [&before, &after, &page].map(|file| file.to_str().expect("text"));
    about_memory(&["page", "build", files[0], files[1], "-o", files[2]]).expect("a page");
    let page = std::fs::read_to_string(page).expect("text");
    let difference = embedded(&page, "differences/0/1");
    let reports = difference["reports"].as_array().expect("reports");
    let grown: Vec<&Value> = reports
        .iter()
        .filter(|report| report["path"] == "explicit/c-heap/libkeeping.so/c_leak")
        .map(|report| &report["amount"])
        .collect();
    assert_eq!(grown, [REQUESTS * LEAKED], "{difference}");
    let stack = [STACK[0], STACK[1], "c_leak (libkeeping.so)"];
    for (moment, blocks) in [("moments/0/heap", 1), ("moments/1/heap", 1 + REQUESTS)] {
        assert_eq!(bytes_of_rows(&embedded(&page, moment), &stack), blocks * LEAKED, "{moment}");
    }
}
