//! Tests collections while reporters are registered, dropped, fail and wait.

use std::sync::{Arc, Mutex};

use memreport::{Collector, MallocSizeOf, Report, Reporter, Reports, Snapshot};

fn amounts(snapshot: &Snapshot, path: &str) -> Vec<i64> {
    snapshot
        .reports
        .iter()
        .filter(|report| report.path == path)
        .map(|report| report.amount)
        .collect()
}

static LINKED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/linked", LINKED, "A list that the linker knows of.");

#[test]
fn a_linked_reporter_is_always_asked() {
    assert_eq!(amounts(&memreport::snapshot(), "explicit/linked"), [0]);
}

#[test]
fn a_registration_lasts_until_it_is_dropped() {
    let registration = memreport::register(|reports: &mut Reports<'_>| {
        reports.add(Report::count("registered", 7, "Seven."));
    });
    assert_eq!(amounts(&memreport::snapshot(), "registered"), [7]);
    drop(registration);
    assert_eq!(amounts(&memreport::snapshot(), "registered"), [0_i64; 0]);

    memreport::register(|reports: &mut Reports<'_>| reports.add(Report::count("for ever", 1, "")))
        .forever();
    assert_eq!(amounts(&memreport::snapshot(), "for ever"), [1]);
}

struct Cache {
    size: i64,
}

impl Reporter for Cache {
    fn collect(&self, reports: &mut Reports<'_>) {
        reports.add(Report::non_heap("explicit/weak-cache", self.size, "A cache of its own."));
    }
}

#[test]
fn a_weak_reporter_is_asked_for_as_long_as_it_lives() {
    let cache = Arc::new(Cache { size: 5 });
    let _registration = memreport::register_weak(&cache);
    assert_eq!(amounts(&memreport::snapshot(), "explicit/weak-cache"), [5]);
    drop(cache);
    assert_eq!(amounts(&memreport::snapshot(), "explicit/weak-cache"), [0_i64; 0]);
}

#[test]
fn a_value_is_reported_for_as_long_as_it_lives() {
    let words = Arc::new(vec!["heap".to_owned(); 10]);
    let _registration = memreport::report_value("explicit/value", &words, "Ten words.");
    // Without a declared allocator, sizes come from layouts.
    let expected =
        10 * size_of::<String>() + 10 * 4 + 2 * size_of::<usize>() + size_of::<Vec<String>>();
    assert_eq!(
        amounts(&memreport::snapshot(), "explicit/value"),
        [i64::try_from(expected).unwrap()]
    );
    drop(words);
    assert_eq!(amounts(&memreport::snapshot(), "explicit/value"), [0_i64; 0]);
}

#[test]
fn a_reporter_that_panics_loses_its_own_reports_and_is_named() {
    let shared = Arc::new(vec![1_u8; 100]);
    let (first, second) = (Arc::clone(&shared), Arc::clone(&shared));
    let _bad = memreport::register(move |reports: &mut Reports<'_>| {
        reports.measure("explicit/bad", &first, "Counted, and then lost.");
        panic!("out of paper");
    });
    let _good = memreport::register(move |reports: &mut Reports<'_>| {
        reports.measure("explicit/good", &second, "Free to be counted again.");
    });
    let snapshot = memreport::snapshot();
    assert_eq!(amounts(&snapshot, "explicit/bad"), [0_i64; 0]);
    assert!(
        amounts(&snapshot, "explicit/good")[0] >= 100,
        "the shared block is not lost with the bad report"
    );
    let note =
        snapshot.notes.iter().find(|note| note.contains("out of paper")).expect("it is named");
    assert!(note.contains("panicked") && note.contains("reporters::"), "{note}");
}

#[test]
fn a_busy_value_is_left_out_and_said() {
    let value = Arc::new(Mutex::new(vec![1_u64; 100]));
    let _registration = memreport::report_value("explicit/busy", &value, "A list behind a lock.");
    let guard = value.lock().unwrap();
    let snapshot = memreport::snapshot();
    drop(guard);
    assert!(amounts(&snapshot, "explicit/busy")[0] < 800);
    assert!(
        snapshot.notes.iter().any(|note| note.starts_with("explicit/busy: 1 value was locked")),
        "{:?}",
        snapshot.notes
    );
    assert!(amounts(&memreport::snapshot(), "explicit/busy")[0] >= 800);
}

#[test]
fn every_reporter_is_told_to_leave_private_words_out() {
    let _registration = memreport::register(|reports: &mut Reports<'_>| {
        let page = if reports.anonymize() { "<anonymized>" } else { "http:\\\\secret" };
        reports.add(Report::non_heap(format!("explicit/pages/{page}"), 1, "A page."));
    });
    assert_eq!(amounts(&memreport::snapshot(), "explicit/pages/http:\\\\secret"), [1]);
    let anonymous = Collector::default().anonymize().snapshot();
    assert_eq!(amounts(&anonymous, "explicit/pages/<anonymized>"), [1]);
    assert_eq!(amounts(&anonymous, "explicit/pages/http:\\\\secret"), [0_i64; 0]);
}

#[test]
fn a_snapshot_within_a_reporter_is_refused_and_the_rest_stands() {
    let _registration = memreport::register(|_: &mut Reports<'_>| drop(memreport::snapshot()));
    let snapshot = memreport::snapshot();
    assert!(
        snapshot.notes.iter().any(|note| note.contains("collections do not nest")),
        "{:?}",
        snapshot.notes
    );
    assert_eq!(amounts(&snapshot, "explicit/linked").len(), 1);
}

#[test]
fn what_is_shared_between_reporters_is_counted_once() {
    let shared: Arc<str> = "heap".repeat(100).into();
    let count = |path: &'static str, shared: &Arc<str>| {
        let shared = Arc::clone(shared);
        memreport::register(move |reports: &mut Reports<'_>| {
            reports.measure(path, &shared, "The same text.");
        })
    };
    let _registrations = [count("explicit/once/a", &shared), count("explicit/once/b", &shared)];
    let snapshot = memreport::snapshot();
    let mut both =
        [amounts(&snapshot, "explicit/once/a")[0], amounts(&snapshot, "explicit/once/b")[0]];
    both.sort_unstable();
    assert_eq!(both[0], 0);
    assert!(both[1] >= 400);
}

fn _is_a_trait_object(_: &dyn MallocSizeOf) {}

#[test]
fn the_file_lists_the_reporters_of_the_program() {
    struct Listed(usize);
    impl Reporter for Listed {
        fn collect(&self, reports: &mut Reports<'_>) {
            for number in 0..self.0 {
                let path = format!("explicit/listed-{}/{number}", self.0);
                reports.add(Report::non_heap(path, 1, "One of several."));
            }
        }
    }
    let value = Arc::new(vec![String::from("value")]);
    let _registrations = [
        memreport::report_value("explicit/listed-value", &value, "A value."),
        memreport::register(Listed(16)),
        // This one lists what it has.
        memreport::register(Listed(17)),
    ];
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("reporters.json");
    memreport::snapshot().save(&path).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let listed: Vec<&str> = file["memreport"]["reporters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    assert!(listed.contains(&"explicit/linked"), "{listed:?}");
    assert!(listed.contains(&"explicit/listed-value"), "{listed:?}");
    assert!(listed.contains(&"explicit/listed-16/15"), "{listed:?}");
    assert!(!listed.contains(&"explicit/listed-17/0"), "{listed:?}");
    assert!(listed.iter().all(|path| !path.starts_with("explicit/memreport/")), "{listed:?}");
}
