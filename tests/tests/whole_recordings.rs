//! Tests that recordings of every block lose nothing, and that those which do say what is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use about_memory::{Cli, Context};
use clap::Parser;
use memreport_analysis::recording;
use memreport_analysis::recording::{Recording, Which};

const PARSED: &str = env!("CARGO_BIN_EXE_parsed");

/// More events than any buffer of the recorder holds.
const MANY: u64 = 65_536;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir()
            .join(format!("memreport-whole-recordings-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of letters").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The blocks that the program itself has counted.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    allocated: u64,
    freed: u64,
}

impl Counts {
    fn read(file: &str) -> Self {
        let text = fs::read_to_string(file).expect("the program has written its counts");
        let numbers: Vec<u64> =
            text.split(' ').map(|number| number.parse().expect("a number")).collect();
        Counts { allocated: numbers[0], freed: numbers[1] }
    }

    /// Returns the counts of the scope that the program counts in.
    fn of(recording: &Recording) -> Self {
        let place = recording.scopes.iter().position(|scope| scope.name == "counted");
        let scope = u16::try_from(place.expect("a scope") + 1).expect("few scopes");
        let blocks = recording.blocks(Which::Allocated).expect("our own");
        let blocks: Vec<_> =
            blocks.iter().filter(|block| recording.sites[&block.site].scope == scope).collect();
        let freed = blocks.iter().filter(|block| block.freed.is_some()).count();
        Counts { allocated: blocks.len() as u64, freed: freed as u64 }
    }
}

fn read(file: &str) -> Recording {
    recording::read(fs::File::open(file).expect("it recorded")).expect("a recording")
}

/// Records every block of the program from its start.
fn recorded(folder: &Folder, mode: &[&str]) -> Recording {
    let mut command = Command::new(PARSED);
    command.arg(folder.file("counts")).args(mode);
    command.env("DMD", "--mode=live --stacks=none");
    command.env(dmd::record::VARIABLE, folder.file("%p"));
    let mut child = command.spawn().expect("it starts");
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    read(&folder.file(&child.id().to_string()))
}

#[track_caller]
fn assert_whole(recording: &Recording, counts: &Counts) {
    assert_eq!(recording.lost, 0);
    assert!(recording.is_whole && recording.incomplete().is_none());
    assert!(counts.allocated > MANY, "{counts:?} are too few to tell");
    assert_eq!(&Counts::of(recording), counts);
}

/// Returns the output, the notes and the exit status of `about-memory`.
fn answer(words: &[&str]) -> (String, String, u8) {
    let cli = Cli::try_parse_from([&["about-memory"], words].concat()).expect("good words");
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let done = cli.run(&mut Context::new(&mut out, &mut notes));
    let done = done.unwrap_or_else(|error| panic!("{error}"));
    let code = (0..=u8::MAX).find(|code| done == ExitCode::from(*code)).expect("it is a byte");
    (String::from_utf8(out).expect("text"), String::from_utf8(notes).expect("text"), code)
}

#[test]
fn every_block_is_recorded() {
    let folder = Folder::new("every-block");
    let recording = recorded(&folder, &[]);
    // What the program has freed after its scope has ended was not counted.
    let mut counts = Counts::read(&folder.file("counts"));
    let after = Counts::of(&recording).freed - counts.freed;
    assert!(after < 30, "{after}");
    counts.freed += after;
    assert_whole(&recording, &counts);
    // The counters of the allocator know of no other block: the recorder's own are in no figure.
    let (first, last) = recording.ends().expect("there are sums");
    assert_eq!(last.allocations - first.allocations, recording.block_count);
    let own = |name: &Option<String>| name.as_ref().is_some_and(|name| name.starts_with("dmd-"));
    let sites = recording.sites.values();
    let mut threads = sites.filter_map(|site| recording.threads.get(&site.thread));
    assert!(!threads.any(|thread| own(&thread.name)), "{:?}", recording.threads);
}

#[test]
fn signal_handlers_wait_for_room_too() {
    let folder = Folder::new("signals");
    let recording = recorded(&folder, &["signals"]);
    let allocated = Counts::read(&folder.file("counts")).allocated;
    assert_eq!(recording.lost, 0);
    assert!(recording.is_whole && allocated > MANY);
    // A signal between two instructions of the program may be in its scope and not in its count.
    let found = Counts::of(&recording).allocated;
    assert!(found >= allocated && found - allocated < 1000, "{found} of {allocated}");
}

#[test]
fn a_forked_child_does_not_wait_for_a_recorder_that_it_has_not() {
    let folder = Folder::new("forked");
    let recording = recorded(&folder, &["fork"]);
    assert!(recording.is_whole && recording.lost == 0);
    let counts = Counts::read(&folder.file("counts"));
    assert_eq!(Counts::of(&recording).allocated, counts.allocated);
}

#[test]
fn a_full_buffer_wakes_the_recorder() {
    let folder = Folder::new("own");
    let (file, counts) = (folder.file("own.rec"), folder.file("counts"));
    let out = Command::new(PARSED).args([&counts, "own", &file]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&out.stdout).ends_with(" 0 lost\n"), "{out:?}");
    assert_eq!(Counts::of(&read(&file)).allocated, Counts::read(&counts).allocated);
}

#[test]
fn a_lossy_recording_says_what_is_missing_everywhere() {
    let folder = Folder::new("lossy");
    let (file, counts) = (folder.file("lossy.rec"), folder.file("counts"));
    assert!(Command::new(PARSED).args([&counts, "lossy", &file]).status().unwrap().success());
    let recording = read(&file);
    assert!(recording.is_lossy && !recording.is_whole);
    // Its thread looks at the beginning and at the end, at a full buffer at most.
    let Counts { allocated, freed } = Counts::read(&counts);
    assert!(recording.lost >= allocated + freed - 2 * MANY, "{} lost", recording.lost);
    let sentence = recording.incomplete().expect("it is incomplete");
    let (text, _, code) = answer(&["recording", &file]);
    assert!(text.contains(&sentence) && !text.contains("Every block"), "{text}");
    assert_eq!(code, 3);
    let (text, _, code) = answer(&["recording", &file, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&json["isWhole"], &json["lossy"], code), (&false.into(), &true.into(), 3));
    assert_eq!(json["lost"].as_u64(), Some(recording.lost));
    for words in [&["heap", "tree"][..], &["heap", "diff"]] {
        let (_, notes, _) = answer(&[words, &[&file]].concat());
        assert!(notes.contains(&sentence), "{words:?}: {notes}");
    }
}

#[test]
fn record_takes_lossy_and_a_small_program_loses_nothing() {
    let folder = Folder::new("small");
    let file = folder.file("small.rec");
    let moments = env!("CARGO_BIN_EXE_moments");
    let (text, notes, code) = answer(&["record", "--lossy", "-o", &file, "--", moments]);
    assert_eq!(code, 0, "{text}{notes}");
    assert!(read(&file).is_lossy && read(&file).is_whole);
}

/// The shell limits the size of files, as a full disk does. The signal of that limit would end the
/// program, and a program that waits for its recorder would never end. The limit counts for the
/// program's messages too, if this test writes into a file.
#[test]
fn a_program_goes_on_when_its_recording_cannot_be_written() {
    let folder = Folder::new("full-disk");
    let (file, counts) = (folder.file("full.rec"), folder.file("counts"));
    let script = "ulimit -f 64; DMD='--mode=live --stacks=none' exec \"$0\" \"$1\" 2>/dev/null";
    let program = ["--", "sh", "-c", script, PARSED, &counts];
    let (text, _, code) = answer(&[&["record", "--wrapper", "-o", &file][..], &program].concat());
    assert_eq!(code, 3, "{text}");
    assert!(Counts::read(&counts).allocated > MANY);
    assert!(text.contains("incomplete: it ends before the program did"), "{text}");
    assert!(!read(&file).is_whole && Path::new(&file).exists());
}
