//! Tests the scopes of blocks, in a dump and in a recording.

use std::process::Command;

use memreport_analysis::analysis::{ExplainOptions, group_by};
use memreport_analysis::axis::Axis;
use memreport_analysis::read::Dump;
use memreport_analysis::recording::Which;

const REQUESTS: &str = env!("CARGO_BIN_EXE_requests");
const SCOPED: &str = env!("CARGO_BIN_EXE_scoped");

/// The bytes that requests of each kind keep: two blocks of each size plus glibc's overhead, 500
/// times.
const KEPT: [(&str, i128); 3] =
    [("search", 1000 * 3000), ("store", 1000 * 10_000), ("list", 1000 * 500)];

fn bytes(dump: &Dump, scope: &str) -> i128 {
    let groups = group_by(dump, &Axis::Scope, &ExplainOptions::default());
    let inside = format!("{scope} > ");
    groups
        .iter()
        .filter(|group| group.name == scope || group.name.starts_with(&inside))
        .map(|group| group.all.usable())
        .sum()
}

#[test]
fn requests_keep_what_they_allocate_whichever_thread_they_are_on() {
    let folder = std::env::temp_dir().join(format!("memreport-scopes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let report = folder.join("scoped.json");
    let recording = folder.join("scoped.rec");
    let run = |command: &mut Command| {
        assert!(command.arg(&report).status().expect("it starts").success());
    };
    run(Command::new(SCOPED).env("DMD", "1"));
    let dump = memreport_analysis::read::read_file(&dmd::dump::beside(&report)).expect("a dump");
    // The scopes also have the kinds' lists and remains of the tasks: less than a hundredth.
    for (kind, kept) in KEPT {
        let found = bytes(&dump, kind);
        assert!(found >= kept && found < kept + kept / 100 + 40_000, "{kind}: {found} of {kept}");
    }
    let inner = bytes(&dump, "store > index");
    assert!((5_000_000..5_020_000).contains(&inner), "{inner}");

    let mut command = Command::new(SCOPED);
    command.arg(&report).env("DMD", "--mode=live").env(dmd::record::VARIABLE, folder.join("%p"));
    let mut child = command.spawn().expect("it starts");
    assert!(child.wait().expect("it ends").success());
    std::fs::rename(folder.join(child.id().to_string()), &recording).expect("it recorded");
    let file = std::fs::File::open(&recording).expect("it recorded");
    let recorded = memreport_analysis::recording::read(file).expect("a recording");
    assert_eq!(recorded.lost, 0);
    let retained =
        memreport_analysis::read::read_slice(&recorded.dump(Which::Retained).expect("ours"))
            .expect("ours");
    let all = memreport_analysis::read::read_slice(&recorded.dump(Which::Allocated).expect("ours"))
        .expect("ours");
    for (kind, kept) in KEPT {
        let found = bytes(&retained, kind);
        assert!(found >= kept && found < kept + kept / 100 + 40_000, "{kind}: {found} of {kept}");
        // A third block of each request was freed by another task.
        assert!(bytes(&all, kind) >= kept + kept / 2, "{kind}");
    }
    std::fs::remove_dir_all(folder).expect("ours");
}

/// The requested bytes of one kind of requests in a dump: all, and those in the kind's scope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Requested {
    all: u64,
    right: u64,
}

/// Sums up by the sizes of blocks, which encode the kind.
fn requested_by_kind(dump: &Dump, kinds: &[String]) -> Vec<Requested> {
    let scopes = dump.extension.as_ref().expect("ours");
    let mut requested = vec![Requested::default(); kinds.len()];
    for block in dump.blocks.iter().filter(|block| block.req % 2 == 1 && block.req > 1800) {
        let kind = usize::try_from(block.req / 2 % 3).expect("small");
        let bytes = block.req * block.num;
        requested[kind].all += bytes;
        if scopes.scope_names(block.kind.scope).first() == Some(&&*kinds[kind]) {
            requested[kind].right += bytes;
        }
    }
    requested
}

#[test]
fn what_requests_ask_for_under_load_is_their_kinds() {
    let folder = std::env::temp_dir().join(format!("memreport-requests-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for way in ["scopes", "spans"] {
        let report = folder.join(format!("{way}.json"));
        let mut command = Command::new(REQUESTS);
        command.arg(way).arg(&report).env("DMD", "--mode=cumulative --stacks=none");
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).expect("text");
        let (kinds, truth): (Vec<String>, Vec<u64>) = printed
            .lines()
            .map(|line| line.split_once(' ').expect("two words"))
            .map(|(name, bytes)| (name.to_owned(), bytes.parse::<u64>().expect("bytes")))
            .unzip();
        let dump =
            memreport_analysis::read::read_file(&dmd::dump::beside(&report)).expect("a dump");
        for ((kind, truth), found) in kinds.iter().zip(truth).zip(requested_by_kind(&dump, &kinds))
        {
            assert_eq!(found.all, truth, "{way}, {kind}: the dump has every block, live or not");
            #[expect(clippy::cast_precision_loss, reason = "a share, printed with two digits")]
            let share = found.right as f64 * 100.0 / truth as f64;
            println!("{way}: {share:.2}% of {truth} bytes of {kind} are found there");
            assert!(share >= 99.0, "{way}, {kind}: {share}%");
        }
    }
    std::fs::remove_dir_all(folder).expect("ours");
}
