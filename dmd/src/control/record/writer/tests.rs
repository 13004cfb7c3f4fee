//! Tests of the lines that a writer adds to its file.

use std::io::Read;
use std::path::PathBuf;

use flate2::read::MultiGzDecoder;

use super::*;
use crate::sample::rate::SamplingRate;
use crate::stack::thread::Thread;
use crate::table::epoch::Epoch;
use crate::table::packed_block::Block;

/// A writer, and its file, which is removed with this value.
struct Writing {
    writer: Writer,
    path: PathBuf,
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Writing {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dmd-writer-{name}-{}", std::process::id()));
        let settings = Settings {
            sample_bytes: None,
            may_lose: false,
            free_stacks: false,
            interval: Duration::from_secs(3600),
        };
        let file = File::create(&path).expect("a file");
        Writing { writer: Writer::new(file, settings).expect("a thread"), path }
    }

    /// Returns the lines that were written so far.
    fn lines(&mut self) -> Vec<String> {
        self.writer.out.flush().expect("there is room");
        let mut text = String::new();
        let file = File::open(&self.path).expect("it is there");
        MultiGzDecoder::new(file).read_to_string(&mut text).expect("it is text");
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_scope_is_written_once() {
    let mut writing = Writing::new("scopes");
    let all = [(0, "request"), (1, "search"), (0, "save")];
    let all = all.map(|(parent, name)| (parent, name.to_owned()));
    for known in [2, 2, 3, 1] {
        writing.writer.write_scopes(&all[..known]).expect("there is room");
    }
    let expected = [r#"["scope",0,"request"]"#, r#"["scope",1,"search"]"#, r#"["scope",0,"save"]"#];
    assert_eq!(writing.lines(), expected);
}

#[test]
fn a_thread_is_written_once_with_its_name() {
    let mut writing = Writing::new("threads");
    let thread = std::thread::Builder::new().name("worker".into()).spawn(move || {
        let number = Thread::current(Thread::number).expect("the thread runs");
        // No thread has this number.
        for number in [number, number, u32::MAX, number, u32::MAX] {
            writing.writer.write_thread(number).expect("there is room");
        }
        (writing.lines(), number, sys::thread_id())
    });
    let (lines, number, id) = thread.expect("a thread").join().expect("it does not panic");
    let expected =
        [format!(r#"["thread",{number},{id},"worker"]"#), r#"["thread",4294967295,0,null]"#.into()];
    assert_eq!(lines, expected);
}

#[test]
fn times_are_whole_microseconds_since_the_last() {
    let mut writing = Writing::new("times");
    writing.writer.last = 1_000_000;
    let times = [1_002_500, 1_003_000, 5, 1_003_999, 1_004_000];
    assert_eq!(times.map(|time| writing.writer.since_last(time)), [2, 1, 0, 0, 1]);
}

#[test]
fn a_site_is_known_from_its_first_event_on() {
    let mut writing = Writing::new("sites");
    let mut known = |number| writing.writer.known(SiteId::from_number(number));
    // Nothing is interned here, so these are not the tracker's own.
    assert_eq!(known(5), KnownSite::Program);
    assert_eq!(known(2), KnownSite::Program);
    writing.writer.sites[5] = KnownSite::Written;
    writing.writer.sites[2] = KnownSite::Own;
    let known = [2, 3, 5].map(|number| writing.writer.known(SiteId::from_number(number)));
    assert_eq!(known, [KnownSite::Own, KnownSite::Program, KnownSite::Written]);
    assert_eq!(writing.writer.sites.len(), 6);
}

#[test]
fn each_event_of_the_program_is_counted() {
    let mut writing = Writing::new("events");
    let (site, epoch, rate) = (SiteId::UNKNOWN, Epoch::FIRST, SamplingRate::EVERY);
    let block = Block { requested: 8, usable: 24, site, epoch, rate, time: 0 };
    for event in [
        Event::Allocated { address: 32, block },
        Event::Freed { address: 32, block, freed_at: SiteId::UNKNOWN },
        Event::Allocated { address: 64, block },
    ] {
        let happened = TimedEvent { time: 0, thread: 0, event };
        writing.writer.write_event(&happened).expect("there is room");
    }
    assert_eq!(writing.writer.events, 3);
}
