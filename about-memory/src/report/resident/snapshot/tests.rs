//! Tests the figures of a snapshot, and makes snapshots for other tests.

use super::*;
use memreport::snapshot::read::{Options, read};

/// Makes a snapshot of these reports: `path kind bytes`, a line each.
pub(crate) fn snapshot(minute: u64, reports: &str) -> ProcessSnapshot {
    let reports: Vec<String> = reports
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let [path, kind, amount] = words[..] else { panic!("{line}") };
            format!(
                r#"{{"process":"server (pid 7)","path":"{path}","kind":{kind},"units":0,"amount":{amount},"description":""}}"#
            )
        })
        .collect();
    let text = format!(
        r#"{{"version":1,"hasMozMallocUsableSize":true,"memreport":{{"version":1,"allocator":"glibc","timeMs":{},
           "process":{{"name":"server","pid":7,"startMs":1000}}}},"reports":[{}]}}"#,
        1_000_000 + minute * 60_000,
        reports.join(",")
    );
    let mut snapshots = ProcessSnapshots::default();
    let header = read(&mut text.as_bytes(), Options::default(), &mut snapshots).unwrap();
    snapshots.choose(None, &header).unwrap()
}

#[test]
fn threads_are_counted_by_a_report_of_that_unit_alone() {
    let threads = |reports: &[(&str, f64, f64)]| {
        let mut snapshots = ProcessSnapshots::default();
        for (path, units, amount) in reports {
            let text = format!(
                r#"{{"version":1,"hasMozMallocUsableSize":true,"reports":[{{"process":"p","path":"{path}","kind":2,"units":{units},"amount":{amount},"description":""}}]}}"#
            );
            let mut one = ProcessSnapshots::default();
            read(&mut text.as_bytes(), Options::default(), &mut one).unwrap();
            snapshots.processes.append(&mut one.processes);
        }
        snapshots.processes["p"].threads
    };
    assert_eq!(threads(&[("threads", 1.0, 12.0)]), 12);
    assert_eq!(threads(&[("threads", 2.0, 12.0)]), 0);
    assert_eq!(threads(&[("connections", 1.0, 12.0)]), 0);
}

#[test]
fn figures_of_any_size_are_added_up() {
    let [first, last] = ["8000000000000000", "-8000000000000000"].map(|amount| {
        let paths = ["resident 2", "heap-allocated 2", "rss/files/x 2", "rss/files/y 2"]
            .into_iter()
            .chain(["explicit/a/x 1", "explicit/a/y 1", "explicit/b 1", "explicit/map 0"])
            .chain(["heap-committed/overhead 2", "rss/anonymous/x 2", "rss/heap 2"]);
        let lines: String = paths.map(|path| format!("{path} {amount}\n")).collect();
        snapshot(1, &lines.repeat(1500))
    });
    assert_eq!((first.below("rss/files"), first.heap()["explicit/a"]), (MOST, MOST));
    // Each is a difference of sums.
    for pair in [[first.clone(), last.clone()], [last, first]] {
        let explanation = crate::report::resident::Explanation::new(pair.to_vec());
        assert!(!explanation.sums.is_empty());
    }
}

#[test]
fn reports_are_added_up_by_kind() {
    let snapshot = snapshot(
        2,
        "explicit/a/b 1 10
         explicit/a/c 1 5
         explicit/heap-overhead/bin-unused 0 7
         explicit/map 0 3
         explicit/thread-stacks/x 0 9
         rss/files/x 2 100
         rss/filesystem 2 1
         resident 2 200",
    );
    assert_eq!(snapshot.heap(), &BTreeMap::from([("explicit/a".to_owned(), 15)]));
    assert_eq!(snapshot.mapped(), &BTreeMap::from([("explicit/map".to_owned(), 3)]));
    assert_eq!(snapshot.below("rss/files"), 100);
    assert_eq!(snapshot.below("explicit/heap-overhead"), 7);
    assert_eq!(snapshot.figure("resident"), Some(200));
    assert_eq!(snapshot.process, "server (pid 7)");
    assert_eq!(snapshot.identity, (Some(7), Some(1000)));
    assert_eq!(snapshot.time_ms, Some(1_120_000));
}
