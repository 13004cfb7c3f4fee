//! Tests snapshots of a program whose threads replace blocks in the middle of the collection.

use std::process::Command;

/// A line of the subject.
struct Found {
    /// The difference of `heap-unclassified` from the truth, as a share of the heap.
    share: f64,
    notes: String,
}

fn run(words: &[&str], variable: Option<&str>) -> Vec<Found> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replaced"));
    command.args(words).env_remove("DMD");
    if let Some(variable) = variable {
        command.env("DMD", variable);
    }
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let found = text.lines().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().expect("three parts").to_owned();
        let mut number = || next().parse::<f64>().expect("a number");
        let share = number() / number();
        Found { share, notes: next() }
    });
    found.collect()
}

/// Runs the subject, and checks that each snapshot is within 0.5 % of the truth.
#[track_caller]
fn assert_near_the_truth(words: &[&str], variable: Option<&str>) {
    let found = run(words, variable);
    assert_eq!(Some(found.len().to_string().as_str()), words.first().copied());
    for Found { share, .. } in found {
        assert!(share.abs() < 0.005, "off by {share} of the heap: {words:?}, DMD={variable:?}");
    }
}

#[test]
fn blocks_that_are_replaced_between_two_reporters_count_once() {
    for variable in [None, Some("1"), Some("--stacks=none"), Some("--mode=profile")] {
        assert_near_the_truth(&["2"], variable);
    }
    for late in ["late=--mode=live", "late=--mode=profile --sample-bytes=1K"] {
        assert_near_the_truth(&["2", late], None);
    }
}

#[test]
fn growth_between_two_reporters_is_counted_or_noted() {
    for variable in ["--mode=live", "--stacks=none"] {
        assert_near_the_truth(&["2", "grow"], Some(variable));
    }
    assert_near_the_truth(&["1", "grow", "late=--mode=live"], None);
    for variable in [None, Some("--mode=profile")] {
        for Found { notes, .. } in run(&["2", "grow"], variable) {
            assert!(notes.contains("the heap grew by 2."), "DMD={variable:?}: {notes}");
        }
        for Found { notes, .. } in run(&["2"], variable) {
            assert_eq!(notes, "", "DMD={variable:?}");
        }
    }
}

#[test]
fn blocks_that_come_and_go_while_the_table_is_read_count_not_at_all() {
    for variable in ["--stacks=none", "--mode=live"] {
        assert_near_the_truth(&["6", "busy"], Some(variable));
    }
}
