//! Tests recordings of a program with known allocations, from start to end.

use std::path::PathBuf;
use std::process::Command;

use memreport_analysis::read::{Block, FrameId, read_slice};
use memreport_analysis::recording;
use memreport_analysis::recording::{Estimate, Recording, Which};
use memreport_analysis::symbols::{Options, Symboliser};

const RECORDED: &str = env!("CARGO_BIN_EXE_recorded");

/// The number of blocks of each kind, and their usable size: glibc provides 1,000 bytes exactly.
const COUNT: f64 = 20_000.0;
const SIZE: f64 = 1000.0;

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("memreport-recordings-{name}-{}.rec.gz", std::process::id()))
}

fn record(name: &str, words: &[&str], options: &str) -> Recording {
    record_with("", name, words, options)
}

/// Records with these words before the name of the file in the variable.
fn record_with(before: &str, name: &str, words: &[&str], options: &str) -> Recording {
    let file = file(name);
    let mut command = Command::new(RECORDED);
    let variable = format!("{before}{}", file.display());
    command.args(words).env("DMD", options).env(dmd::record::VARIABLE, variable);
    let mut child = command.spawn().expect("it starts");
    let status = child.wait().expect("it ends");
    // Without `%p`, the name ends in the process number.
    let file = format!("{}.{}", file.display(), child.id());
    assert_eq!(status.success(), words != ["abort"], "{status}");
    let recording =
        recording::read(std::fs::File::open(&file).expect("it recorded")).expect("whole");
    std::fs::remove_file(file).expect("ours");
    recording
}

/// A recording, with the functions of each site.
struct Known {
    recording: Recording,
    functions: Vec<(u32, String)>,
}

impl Known {
    fn new(recording: Recording) -> Self {
        let mut blocks = recording.blocks(Which::Allocated).expect("our own");
        // The dump has the sites in their order, each with blocks of one or more sizes.
        blocks.sort_by_key(|block| (block.site, block.requested, block.usable));
        blocks.dedup_by_key(|block| (block.site, block.requested, block.usable));
        let json = recording.dump(Which::Allocated).expect("our own");
        let mut dump = read_slice(&json).expect("our own dump");
        Symboliser::new(Options::default()).symbolicate(&mut dump);
        assert_eq!(dump.blocks.len(), blocks.len());
        let functions = dump.blocks.iter().map(|block| {
            let trace = block.kind.alloc.map(|trace| dump.trace(trace)).unwrap_or_default();
            trace.iter().map(|frame| format!("{}\n", dump.frames[frame.index()].text)).collect()
        });
        let functions = blocks.iter().map(|block| block.site).zip(functions).collect();
        Known { recording, functions }
    }

    /// Returns the sum of the chosen blocks that this function allocated.
    fn by(&self, which: Which, function: &str) -> Estimate {
        let is_in = |site: u32| {
            self.functions.iter().any(|(of, names)| *of == site && names.contains(function))
        };
        assert!(self.functions.iter().any(|(site, _)| is_in(*site)), "no site in {function}");
        let mut sum = Estimate::default();
        let blocks = self.recording.blocks(which).expect("our own");
        blocks.iter().filter(|block| is_in(block.site)).for_each(|block| sum.add(block));
        sum
    }
}

#[track_caller]
fn assert_near(estimate: Estimate, bytes: f64) {
    // Five standard errors are exceeded once in two million runs; one block is in all of them by
    // chance.
    let most = 5.0 * estimate.error() + 20_000.0;
    assert!((estimate.bytes - bytes).abs() <= most, "{estimate:?} is not {bytes} ± {most}");
}

#[test]
fn a_sample_is_balanced_and_comes_to_what_was_allocated() {
    let recording = record("sample", &[], "--mode=profile --sample-bytes=8K");
    assert!(recording.is_whole && recording.lost == 0);
    assert_eq!(recording.sample_bytes, Some(8192));
    let known = Known::new(recording);
    let recording = &known.recording;
    let kept = known.by(Which::Retained, "recorded::leaks");
    // The list's own buffer is 480,000 bytes at the end, and more while it grew.
    assert_near(kept, COUNT * SIZE + 20_000.0 * 24.0);
    assert_eq!(known.by(Which::Retained, "recorded::hands_over").bytes, 0.0);
    assert_near(known.by(Which::Allocated, "recorded::comes_and_goes"), COUNT * SIZE);
    assert_near(known.by(Which::Temporary, "recorded::comes_and_goes"), COUNT * SIZE);
    assert_near(known.by(Which::AtPeak, "recorded::peaks"), 4.0 * COUNT * SIZE + 480_000.0);
    let blocks = recording.blocks(Which::Freed).expect("our own");
    let freed_elsewhere = blocks.iter().filter(|block| {
        let at = recording.sites[&block.site].thread;
        block.freed.is_some_and(|freed| freed.thread != at)
    });
    assert!(freed_elsewhere.count() > 1000);
    assert!(recording.threads.values().any(|thread| thread.name.as_deref() == Some("recorded")));
}

/// Returns the stacks of functions that freed blocks, with the bytes that each freed.
fn freed_by(recording: &Recording) -> Vec<(Vec<String>, u64)> {
    let mut dump =
        read_slice(&recording.dump(Which::Freed).expect("our own")).expect("our own dump");
    Symboliser::new(Options::default()).symbolicate(&mut dump);
    let name = |frame: &FrameId| dump.frames[frame.index()].text.to_string();
    let stack = |block: Block<'_>| match block.kind.alloc {
        Some(trace) => dump.trace(trace).iter().map(name).collect(),
        None => Vec::new(),
    };
    dump.blocks.iter().map(|block| (stack(block), block.usable() * block.num)).collect()
}

#[test]
fn frees_have_stacks_on_request() {
    for unwinder in ["frame-pointers", "cfi", "backtrace"] {
        let options = format!("--mode=live --unwinder={unwinder}");
        let recording = record_with("--free-stacks ", unwinder, &[], &options);
        assert!(recording.has_free_stacks && recording.is_whole);
        let freed = freed_by(&recording);
        let bytes_in = |function: &str| -> u64 {
            let is_in = |stack: &[String]| stack.iter().any(|frame| frame.contains(function));
            freed.iter().filter(|(stack, _)| is_in(stack)).map(|(_, bytes)| bytes).sum()
        };
        // What one thread allocates, the other one frees.
        let each = 20_000 * 1000;
        assert_eq!(bytes_in("recorded::comes_and_goes"), each);
        assert!((each..each + 1_000_000).contains(&bytes_in("recorded::main::{{closure}}")));
        assert!((4 * each..4 * each + 2_000_000).contains(&bytes_in("recorded::peaks")));
        let is_own = |frame: &str| frame.contains("dmd::") || frame.contains("GlobalAlloc");
        let own = freed.iter().find(|(stack, _)| stack.iter().any(|frame| is_own(frame)));
        assert_eq!(own, None, "{unwinder}");
    }
}

#[test]
fn frees_have_no_stacks_unless_it_is_requested() {
    let recording = record("unrequested", &[], "--mode=live");
    assert!(!recording.has_free_stacks);
    let blocks = recording.blocks(Which::Freed).expect("our own");
    assert!(blocks.iter().filter_map(|block| block.freed).all(|freed| freed.site == 0));
    let recording = record_with("--free-stacks ", "none", &[], "--mode=live --stacks=none");
    assert!(!recording.has_free_stacks);
}

#[test]
fn the_sums_are_exact() {
    let recording = record("sums", &[], "--mode=profile");
    let (first, last) = recording.ends().expect("there are sums");
    let allocated = u32::try_from(last.allocations - first.allocations).expect("not so many");
    assert!(f64::from(allocated) >= 4.0 * COUNT, "{first:?} {last:?}");
    assert!(recording.peak().expect("there is one").bytes > 100_000_000);
    assert!(last.live_bytes() > 20_000_000 && last.live_bytes() < 25_000_000);
    assert!(recording.timeline.windows(2).all(|pair| pair[0].time <= pair[1].time));
    assert_eq!(
        recording.marks.iter().filter(|mark| mark.text == "what is kept is there").count(),
        1
    );
}

#[test]
fn cycles_are_recorded_with_their_slices_without_a_handler() {
    let recording = record("cycles", &[], "--mode=profile");
    let mark = recording.marks.iter().find(|mark| mark.text.starts_with("tidying: 2 slices, "));
    let mark = mark.expect("a mark of the cycle");
    let cycle = mark.cycle.as_ref().expect("the cycle");
    assert_eq!(cycle.reason, "tidying");
    assert_eq!(cycle.nonincremental_reason.as_deref(), Some("requested"));
    let [first, second] = &cycle.slices[..] else { panic!("{cycle:?}") };
    assert!(first.start + 2000 <= first.end + 1 && second.start + 2000 <= second.end + 1);
    assert!(first.end <= second.start && second.end <= mark.time, "{cycle:?}");
}

#[test]
fn every_block_can_be_recorded() {
    let recording = record("all", &[], "--mode=live");
    assert_eq!(recording.sample_bytes, None);
    assert_eq!(recording.lost, 0);
    assert_eq!(recording.sum(Which::Retained).expect("our own").error(), 0.0);
    let known = Known::new(recording);
    assert_eq!(known.by(Which::Retained, "recorded::hands_over").bytes, 0.0);
    assert_eq!(known.by(Which::Allocated, "recorded::comes_and_goes").bytes, COUNT * SIZE);
}

#[test]
fn what_a_killed_program_left_is_read() {
    let recording = record("abort", &["abort"], "--mode=profile --sample-bytes=8K");
    assert!(!recording.is_whole);
    let known = Known::new(recording);
    assert_near(known.by(Which::AtPeak, "recorded::peaks"), 4.0 * COUNT * SIZE + 480_000.0);
}

#[test]
fn a_forked_child_ends_and_its_parent_is_recorded_on() {
    let recording = record("fork", &["fork"], "--mode=profile");
    assert!(recording.is_whole);
    assert!(!recording.marks.iter().any(|mark| mark.text == "in the child"));
    assert!(recording.marks.iter().any(|mark| mark.text == "what is kept is there"));
}
