//! Tests every mode of the tracker on a program whose blocks are known.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use memreport_analysis::read::{Block, Dump};

/// Runs the subject. Returns its dump and its output.
fn run(case: &str, variable: &str) -> (Dump, String) {
    let folder = folder(&format!("{case} {variable}"));
    let report = folder.join("heap.json");
    let output = start(case, variable, &report);
    let dump = read(&dmd::dump::beside(&report));
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    (dump, String::from_utf8(output.stdout).expect("numbers are text"))
}

fn start(case: &str, variable: &str, report: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modes"));
    command.arg(case).arg(report).env_remove("DMD");
    if !variable.is_empty() {
        command.env("DMD", variable);
    }
    let output = command.output().expect("the subject starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn folder(name: &str) -> PathBuf {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let folder = std::env::temp_dir().join(format!("modes-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    folder
}

fn read(path: &Path) -> Dump {
    memreport_analysis::read::read_file(path).expect("the dump is there, and good")
}

/// Returns the records of live blocks of this many requested bytes.
fn of_size(dump: &Dump, req: u64) -> Vec<Block<'_>> {
    dump.blocks.iter().filter(|block| block.req == req && !block.kind.freed).collect()
}

fn count(blocks: &[Block<'_>]) -> u64 {
    blocks.iter().map(|block| block.num).sum()
}

/// Checks that the subject's two numbers are equal.
fn balances(printed: &str) {
    for line in printed.lines().filter(|line| *line != "asleep") {
        let (subtraction, books) = line.split_once(' ').expect("two numbers");
        assert_eq!(subtraction, books, "{printed}");
    }
}

#[test]
fn partial_stacks_are_sampled_by_size_and_the_counts_stay_exact() {
    let (dump, printed) = run("three-sizes", "--stacks=partial");
    balances(&printed);
    for (req, expected) in [(16_u64, 0.0695), (128, 0.336), (1024, 0.955)] {
        let blocks = of_size(&dump, req);
        assert!(count(&blocks) >= 10_000, "{req}: {}", count(&blocks));
        let with_stack: Vec<_> =
            blocks.iter().copied().filter(|block| block.kind.alloc.is_some()).collect();
        let share = count(&with_stack) as f64 / count(&blocks) as f64;
        // Five standard deviations of ten thousand samples are 0.025 at most. Usable sizes are
        // those of glibc: 24, 136, 1032.
        assert!((share - expected).abs() < 0.03, "{req}: {share}");
    }
}

#[test]
fn a_full_dump_has_a_stack_for_every_block_and_one_without_has_none() {
    for (variable, has_stacks) in [("--stacks=full", true), ("--stacks=none", false)] {
        let (dump, printed) = run("three-sizes", variable);
        balances(&printed);
        let blocks = of_size(&dump, 1024);
        assert!(count(&blocks) >= 10_000);
        assert!(blocks.iter().all(|block| block.kind.alloc.is_some() == has_stacks), "{variable}");
        let reported = blocks.iter().copied().filter(|block| dump.reports(block).is_some());
        assert_eq!(count(&reported.collect::<Vec<_>>()), 10_000);
    }
}

#[test]
fn freed_blocks_are_counted_with_and_without_stacks() {
    for stacks in ["full", "partial", "none"] {
        let (dump, printed) = run("short-lived", &format!("--mode=cumulative --stacks={stacks}"));
        balances(&printed);
        let freed = |req| {
            let blocks = dump.blocks.iter().filter(|block| block.req == req && block.kind.freed);
            blocks.map(|block| block.num).sum::<u64>()
        };
        // Each step of a reallocation counts as a freed block.
        let counts = [300, 200, 400, 800].map(freed);
        assert!(counts[0] >= 500 && counts[1..].iter().all(|count| *count >= 1), "{counts:?}");
        assert_eq!(count(&of_size(&dump, 300)), 0);
        assert!(dump.blocks.iter().all(|block| dump.reports(&block).is_none()));
    }
}

#[test]
fn a_scan_has_addresses_and_contents() {
    let (dump, printed) = run("pointing", "--mode=scan --stacks=none");
    balances(&printed);
    let words_of = |req: u64| {
        let found: Vec<_> = dump
            .contents()
            .filter(|contents| dump.blocks.at(contents.block()).req == req)
            .map(|contents| {
                let words = dump.words(&contents, &mut Vec::new()).to_vec();
                (dump.blocks.at(contents.block()).addr, words)
            })
            .collect();
        assert_eq!(found.len(), 1, "{req}");
        found[0].clone()
    };
    let (target, contents) = words_of(88);
    assert_eq!(contents, [0xfeed_f00d; 11]);
    let (_, words) = words_of(800);
    assert_eq!((words.len(), words[7]), (100, target.expect("a scan has addresses").get()));
    assert_eq!((words[8], words[99]), (0, u64::MAX));
    // A scan keeps all stacks, whatever the other options.
    assert!(of_size(&dump, 800)[0].kind.alloc.is_some());
    let addresses: Vec<_> = dump.blocks.iter().map(|block| block.addr).collect();
    assert!(addresses.is_sorted() && addresses.iter().all(Option::is_some));
}

#[test]
fn a_scan_that_finds_no_room_for_contents_says_so_and_has_the_rest() {
    let folder = folder("no room");
    let report = folder.join("heap.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_modes"));
    command.args(["pointing".as_ref(), report.as_os_str()]);
    command.env("DMD", "--mode=scan").env("TMPDIR", "/not/there");
    let output = command.output().expect("the subject starts");
    balances(&String::from_utf8_lossy(&output.stdout));
    let dump = read(&dmd::dump::beside(&report));
    assert_eq!(dump.contents().count(), 0);
    assert!(dump.blocks.iter().all(|block| block.addr.is_some()));
    assert_eq!(count(&of_size(&dump, 800)), 1);
    let [note] = &dump.notes[..] else { panic!("{:?}", dump.notes) };
    assert!(
        note.contains("contents of blocks are missing") && note.contains("/not/there"),
        "{note}"
    );
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn a_profile_estimates_all_blocks_from_a_sample() {
    let (dump, printed) = run("sample", "--mode=profile --sample-bytes=16K");
    balances(&printed);
    // 100,000 blocks each of 24, 136 and 1,032 usable bytes.
    let truth = 100_000.0 * (24.0 + 136.0 + 1032.0);
    let sampled =
        dump.extension.as_ref().and_then(|extension| extension.sampled).expect("a profile");
    assert_eq!(sampled.sample_bytes, 16 * 1024);
    let once = sampled.once;
    assert!(once.error > 0.0 && once.error < truth / 50.0, "{once:?}");
    assert!((once.bytes - truth).abs() < 5.0 * once.error + 3_000_000.0, "{once:?}");
    let taken = count(&dump.blocks.iter().collect::<Vec<_>>());
    assert!((2_000..20_000).contains(&taken), "{taken}");
    // Weights restore the number of each size.
    for (req, spread) in [(16, 0.5), (128, 0.25), (1024, 0.1)] {
        let blocks = of_size(&dump, req);
        let number: f64 = blocks.iter().map(|block| block.num as f64 * block.kind.weight).sum();
        assert!((number / 100_000.0 - 1.0).abs() < spread, "{req}: {number}");
    }
}

#[test]
fn a_profile_forgets_what_is_given_back() {
    let (dump, printed) = run("balanced", "--mode=profile --sample-bytes=4K");
    balances(&printed);
    assert_eq!(count(&of_size(&dump, 1024)), 0);
    assert_eq!(count(&of_size(&dump, 128)), 0);
}

#[test]
fn tracking_starts_and_stops_while_the_program_runs() {
    let folder = folder("on-and-off");
    let report = folder.join("heap.json");
    let output = start("on-and-off", "", &report);
    balances(&String::from_utf8_lossy(&output.stdout));
    let at = |ending: &str| read(&dmd::dump::beside(&report.with_extension(ending)));
    let sizes = |dump: &Dump| {
        [5000, 6000, 7000, 8000, 9000, 10_000, 11_000, 12_000, 13_000]
            .map(|req| count(&of_size(dump, req)))
    };
    assert!(!dmd::dump::beside(&report.with_extension("asleep")).exists());
    assert_eq!(sizes(&at("json")), [0, 0, 0, 1, 1, 1, 0, 0, 0]);
    assert_eq!(sizes(&at("stopped")), [0, 0, 0, 1, 1, 0, 0, 0, 0]);
    assert_eq!(sizes(&at("again")), [0, 0, 0, 1, 1, 0, 0, 0, 1]);
    for ending in ["json", "stopped", "again"] {
        let extension = at(ending).extension.expect("it is ours");
        assert!(extension.untracked.bytes >= 11_000, "{ending}: {:?}", extension.untracked);
        // Reports of blocks from before are no errors.
        assert!(extension.wrong.is_empty(), "{ending}: {:?}", extension.wrong);
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn times_that_are_kept_from_some_time_on_are_freed_with_their_blocks() {
    let folder = folder("times-later");
    let report = folder.join("heap.json");
    let output = start("times-later", "1", &report);
    balances(&String::from_utf8(output.stdout).expect("numbers are text"));
    let dumps = [report.clone(), report.with_extension("replaced")];
    let [first, replaced] = dumps.map(|report| read(&dmd::dump::beside(&report)));
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    for dump in [&first, &replaced] {
        for (size, expected, has_age) in [(500, 400, false), (700, 1000, true)] {
            let blocks = of_size(dump, size);
            assert_eq!(count(&blocks), expected, "{size}");
            assert!(blocks.iter().all(|block| block.kind.age_ms.is_some() == has_age), "{size}");
        }
    }
    let of_tables = |dump: &Dump| dump.extension.as_ref().and_then(|found| found.tracker_bytes);
    let (before, after) = (of_tables(&first).unwrap_or(0), of_tables(&replaced).unwrap_or(0));
    // A time is in a record of 32 bytes: 200,000 of them would be 6 MB.
    assert!(before > 0 && after < before + (2 << 20), "{before} bytes of tables, then {after}");
}

/// Runs the subject until it has used up its memory. Returns its dump and its output. The allocator
/// takes so much memory in advance.
fn exhausted(name: &str, in_advance: u64) -> (Dump, String) {
    let folder = folder(name);
    let report = folder.join("heap.json");
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "ulimit -v 1000000; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_modes"),
        "exhausted",
    ]);
    shell.env("MALLOC_TOP_PAD_", in_advance.to_string());
    let output = shell.arg(&report).env("DMD", "1").output().expect("there is a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let dump = read(&dmd::dump::beside(&report));
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    (dump, String::from_utf8(output.stdout).expect("numbers are text"))
}

#[test]
fn a_dump_is_whole_when_the_program_has_used_up_its_memory() {
    let (dump, printed) = exhausted("exhausted", 0);
    balances(&printed);
    assert_eq!(count(&of_size(&dump, 1024)), 10_000);
    // Most of a gigabyte; the rest is address space for the table.
    let hoarded = count(&of_size(&dump, 1 << 20));
    assert!((400..1000).contains(&hoarded), "{hoarded}");
}

#[test]
fn a_dump_names_what_is_missing_because_memory_was_short() {
    // What the program frees is the allocator's then, and not the system's.
    let (dump, _) = exhausted("short", 128 << 20);
    assert!(dump.notes.iter().any(|note| note.contains("claims were made")), "{:?}", dump.notes);
}
