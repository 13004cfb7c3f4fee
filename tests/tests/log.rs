//! Single allocations: how old blocks are, where values were allocated, and the log.

use std::path::PathBuf;
use std::process::Command;

const SUBJECT: &str = env!("CARGO_BIN_EXE_log");

/// A file of this test's own.
fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("memreport-log-{}-{name}", std::process::id()))
}

#[test]
fn a_dump_says_how_old_blocks_are() {
    for mode in ["dark-matter", "scan"] {
        let report = file(&format!("ages-{mode}.json"));
        let beside = dmd::dump::beside(&report);
        let status = Command::new(SUBJECT)
            .env("DMD", format!("--mode={mode} --times=yes"))
            .arg("ages")
            .arg(&report)
            .status();
        assert!(status.expect("it starts").success());
        let dump = dmd::dump::read::read_file(&beside).expect("a dump");
        assert!(dump.extension.as_ref().is_some_and(|ours| ours.times));
        let of = |size: u64| dump.blocks.iter().filter(move |block| block.req == size);
        let youngest = of(10_000).filter_map(|block| block.age_ms).min().expect("they have ages");
        let oldest = of(20_000).filter_map(|block| block.age_ms).max().expect("they have ages");
        // A class is up to 9 % below the age.
        assert!(youngest >= 400 * 91 / 100, "{youngest} ms");
        assert!(oldest + 300 < youngest * 110 / 100, "{oldest} and {youngest} ms");
        let groups = of(10_000).count();
        assert_eq!(of(10_000).map(|block| block.num).sum::<u64>(), 50);
        // All of them are made within a few milliseconds.
        assert!(mode == "scan" || groups < 10, "{groups} groups");
        assert!(dump.blocks.iter().all(|block| block.age_ms.is_some()));
        for path in [report, beside] {
            std::fs::remove_file(path).expect("it was written");
        }
    }
}
