//! Tests that heap-unclassified by subtraction equals DMD's sum over blocks, in a real program with
//! planted faults.
//!
//! Each fault must move it by exactly its own size.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FAULTS: [&str; 5] = ["unreported", "double", "non-heap", "interior", "partial"];

/// The output of one run of the subject.
struct Run {
    /// The state before faults were planted.
    baseline: Balance,
    balance: Balance,
    /// The stated effect of each planted fault on heap-unclassified, in bytes.
    planted: BTreeMap<String, i64>,
}

/// A snapshot and the dump beside it.
struct Balance {
    snapshot: Value,
    dump: Value,
}

/// Runs the subject under DMD on the sources of a crate of this repository.
fn run(name: &str, faults: &[&str]) -> Run {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("balance");
    std::fs::create_dir_all(&folder).expect("the target folder is ours");
    let (baseline, after) =
        (folder.join(format!("{name}.before.json")), folder.join(format!("{name}.json")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulltext"));
    command.env("DMD", "1").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../memreport"));
    command.arg("--baseline").arg(&baseline).arg("--snapshot").arg(&after);
    command.args(faults.iter().flat_map(|fault| ["--plant", fault]));
    let output = command.output().expect("cargo has built it");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    Run {
        baseline: Balance::read(&baseline),
        balance: Balance::read(&after),
        planted: message.lines().filter_map(planted).collect(),
    }
}

/// Parses a line such as `planted double: 100 bytes in 2 blocks, heap-unclassified -100`.
fn planted(line: &str) -> Option<(String, i64)> {
    let (fault, text) = line.strip_prefix("planted ")?.split_once(": ")?;
    let (_, moves) = text.split_once("heap-unclassified ")?;
    Some((fault.to_owned(), moves.parse().ok()?))
}

impl Balance {
    fn read(snapshot: &Path) -> Self {
        let json = |path: &Path| {
            let text = std::fs::read_to_string(path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        Balance { snapshot: json(snapshot), dump: json(&snapshot.with_extension("dmd.json")) }
    }

    fn heap_allocated(&self) -> i64 {
        let mut reports = list(&self.snapshot, "reports").iter();
        let of_path = reports.find(|report| report["path"] == "heap-allocated");
        number(of_path.expect("every program reports it"), "amount")
    }

    /// Returns heap-unclassified as viewers compute it: all allocated bytes less the reported ones.
    fn unclassified_by_subtraction(&self) -> i64 {
        const HEAP: i64 = 1;
        let is_explicit = |report: &&Value| {
            let path = report["path"].as_str().unwrap_or_default();
            report["kind"] == HEAP && path.starts_with("explicit/")
        };
        let reports = list(&self.snapshot, "reports").iter().filter(is_explicit);
        let amounts = reports.map(|report| number(report, "amount"));
        self.heap_allocated() - amounts.sum::<i64>()
    }

    /// Returns heap-unclassified as DMD computes it: the errors of each block, added up.
    fn unclassified_by_blocks(&self) -> i64 {
        let partial: i64 = self
            .wrong("partial")
            .map(|wrong| number(wrong, "usable") - number(wrong, "claimed"))
            .sum();
        let nowhere: i64 = ["non-heap", "interior", "freed-since"]
            .into_iter()
            .flat_map(|kind| self.wrong(kind))
            .map(|wrong| number(wrong, "claimed"))
            .sum();
        let unmeasured = number(&self.dump["memreport"], "unmeasured");
        self.unreported() + partial - self.doubled() - nowhere - unmeasured
    }

    fn unreported(&self) -> i64 {
        self.blocks().filter(|block| block.reports == 0).map(|block| block.bytes).sum()
    }

    /// Returns the bytes of second reports.
    fn doubled(&self) -> i64 {
        self.blocks().map(|block| block.bytes * (block.reports - 1).max(0)).sum()
    }

    fn all_blocks(&self) -> i64 {
        self.blocks().map(|block| block.bytes).sum()
    }

    fn blocks(&self) -> impl Iterator<Item = Block> {
        list(&self.dump, "blockList").iter().map(|block| Block {
            bytes: (number(block, "req") + block["slop"].as_i64().unwrap_or(0))
                * block["num"].as_i64().unwrap_or(1),
            reports: block["reps"].as_array().into_iter().flatten().map(|_| 1).sum(),
        })
    }

    fn wrong(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let wrong = list(&self.dump["memreport"], "wrong");
        wrong.iter().filter(move |wrong| wrong["is"] == kind)
    }

    /// Returns the violated promises of the program: under 5 % unreported, and nothing reported
    /// twice or wrongly.
    fn complaints(&self) -> Vec<&'static str> {
        let is_wrong = |kind| self.wrong(kind).next().is_some();
        let table = [
            ("unreported", self.unreported() * 20 > self.heap_allocated()),
            ("double", self.doubled() > 0),
            ("non-heap", is_wrong("non-heap")),
            ("interior", is_wrong("interior")),
            ("partial", is_wrong("partial")),
            ("freed-since", is_wrong("freed-since")),
        ];
        table.into_iter().filter(|(_, holds)| *holds).map(|(fault, _)| fault).collect()
    }

    #[track_caller]
    fn assert_balanced(&self) {
        assert_eq!(self.unclassified_by_subtraction(), self.unclassified_by_blocks());
        assert_eq!(self.heap_allocated(), self.all_blocks());
        assert_eq!(number(&self.dump["memreport"], "heapAllocated"), self.heap_allocated());
    }
}

/// Blocks with equal stacks and sizes.
struct Block {
    /// The bytes of all of them.
    bytes: i64,
    reports: i64,
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list {key}"))
}

fn number(value: &Value, key: &str) -> i64 {
    value[key].as_i64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn without_faults_next_to_nothing_is_unclassified() {
    let Run { balance, planted, .. } = run("quiet", &[]);
    balance.assert_balanced();
    assert_eq!(balance.complaints(), [""; 0]);
    assert!(planted.is_empty());
    let (unclassified, all) = (balance.unclassified_by_subtraction(), balance.heap_allocated());
    assert!(unclassified * 20 < all, "{unclassified} of {all} bytes");
    // The rest is std's: the buffer of stdout, and its data for each thread.
    assert!((0..4096).contains(&unclassified), "{unclassified} bytes");
}

#[test]
fn each_fault_moves_the_sum_by_its_size_and_is_complained_of() {
    for fault in FAULTS {
        let Run { baseline, balance, planted } = run(fault, &[fault]);
        baseline.assert_balanced();
        balance.assert_balanced();
        let before = baseline.unclassified_by_subtraction();
        let moves = planted[fault];
        assert_ne!(moves, 0, "{fault}");
        assert_eq!(balance.unclassified_by_subtraction() - before, moves, "{fault}");
        assert_eq!(baseline.complaints(), [""; 0], "before {fault}");
        assert_eq!(balance.complaints(), [fault]);
    }
}

#[test]
fn faults_are_told_apart() {
    let Run { baseline, balance, planted } = run("all", &FAULTS);
    balance.assert_balanced();
    let before = baseline.unclassified_by_subtraction();
    assert_eq!(balance.unclassified_by_subtraction() - before, planted.values().sum::<i64>());
    assert_eq!(balance.complaints(), FAULTS);
    // Each fault is where DMD reports it.
    let claimed = |kind| balance.wrong(kind).map(|wrong| number(wrong, "claimed")).sum::<i64>();
    assert_eq!(balance.unreported() - baseline.unreported(), planted["unreported"]);
    assert_eq!(balance.doubled(), -planted["double"]);
    assert_eq!(claimed("non-heap"), -planted["non-heap"]);
    let text = include_str!("../src/bin/fulltext/default.json");
    assert_eq!(claimed("non-heap"), i64::try_from(text.len()).unwrap());
    assert_eq!(claimed("interior"), -planted["interior"]);
    let partial = balance.wrong("partial").next().unwrap();
    assert_eq!(number(partial, "usable") - number(partial, "claimed"), planted["partial"]);
}

#[test]
fn the_unreported_structure_is_the_biggest_dark_record() {
    let Run { balance, planted, .. } = run("dark", &["unreported"]);
    let biggest =
        balance.blocks().filter(|block| block.reports == 0).map(|block| block.bytes).max();
    assert_eq!(biggest, Some(planted["unreported"]));
}

#[test]
fn planting_needs_dmd() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulltext"));
    let output = command.args(["--plant", "interior", "."]).env_remove("DMD").output().unwrap();
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "fulltext: --plant is for DMD to find: start the program with DMD=1, or under `about-memory run`\n"
    );
}
