//! The outcome of one run: the tests that passed or failed, and the messages of those that failed.

use std::collections::BTreeMap;

use super::TESTS;

/// The tests with a planted defect, and the parts of the message that name it. Bytes are left out:
/// usable sizes depend on the blocks that happen to be free.
pub(super) const PLANTED: [(&str, &[&str]); 10] = [
    (
        "a_derived_type_skips_a_field",
        &["suite::planted::Derived._pictures (src/planted.rs:14)", "in 4 blocks missed"],
    ),
    (
        "an_impl_by_hand_forgets_a_field",
        &[
            "suite::planted::ByHand._pictures is not measured",
            "in 4 blocks missed",
            "planted.rs:36",
        ],
    ),
    (
        "an_inner_impl_by_hand_forgets_a_field",
        &[
            "suite::planted::ByHand._pictures, in suite::planted::Around.parts",
            "in 8 blocks missed",
        ],
    ),
    (
        "a_reported_value_skips_a_field",
        &["in 2 blocks: [u8]", "suite::planted::Derived._pictures is skipped at src/planted.rs:14"],
    ),
    ("a_reported_value_forgets_a_field", &["in 2 blocks: [u8]", "suite/src/planted.rs:70"]),
    (
        "a_static_has_no_reporter",
        &["[suite::shop::Article]", "no reporter reaches static suite::planted::UNREPORTED"],
    ),
    (
        "a_static_has_two_reporters",
        &[
            "in 33 blocks are reported twice",
            "reported by explicit/first",
            "reported by explicit/second",
        ],
    ),
    ("an_order_exceeds_its_budget", &["blocks were allocated, and at most 3 may be"]),
    ("an_owner_elsewhere_is_not_declared", &["counts a block that the value does not own"]),
    ("a_thread_that_joined_in_is_not_reported", &["in 1 block: [u8]", "suite/src/planted.rs:113"]),
];

/// The outcome of one run.
#[derive(Default)]
pub(super) struct Outcome {
    /// The tests by name: true for those that passed.
    passed: BTreeMap<String, bool>,
    /// The whole output, with the messages.
    printed: String,
}

impl Outcome {
    /// Reads what `cargo test` or `cargo nextest run` has printed.
    pub(super) fn of(printed: &str) -> Self {
        let mut outcome = Outcome { printed: printed.to_owned(), ..Outcome::default() };
        for line in printed.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            // The two test binaries have no name in common.
            let (name, passed) = match words[..] {
                ["test", name, .., "...", result @ ("ok" | "FAILED")] => (name, result == "ok"),
                ["PASS", .., name] => (name, true),
                // A test that fails is printed again in nextest's summary.
                ["FAIL", .., name] => (name, false),
                _ => continue,
            };
            outcome.passed.insert(name.to_owned(), passed);
        }
        outcome
    }

    /// Returns the number of tests.
    pub(super) fn tests(&self) -> usize {
        self.passed.len()
    }

    /// Returns a line for each test with another outcome than it must have.
    pub(super) fn defects(&self) -> Vec<String> {
        let mut defects = Vec::new();
        if self.tests() != TESTS {
            defects.push(format!("{} tests were run, not {TESTS}", self.tests()));
        }
        for (test, passed) in &self.passed {
            let planted = PLANTED.iter().find(|(name, _)| test.ends_with(name));
            match planted {
                Some(_) if *passed => defects.push(format!("{test} has passed")),
                Some((name, parts)) => {
                    let message = self.message(name);
                    let missing = parts.iter().filter(|part| !message.contains(**part));
                    defects.extend(
                        missing.map(|part| format!("{test} does not say \"{part}\":\n{message}")),
                    );
                }
                None if !*passed => {
                    let name = test.rsplit("::").next().unwrap_or(test);
                    defects.push(format!("{test} has failed:\n{}", self.message(name)));
                }
                None => {}
            }
        }
        defects
    }

    /// Returns the message with which a test panicked: the lines up to the next empty one.
    fn message(&self, name: &str) -> String {
        let is_head = |line: &&str| line.contains(name) && line.contains("panicked at");
        let lines = self.printed.lines().skip_while(|line| !is_head(line));
        let trimmed = lines.map(str::trim).take_while(|line| !line.is_empty());
        trimmed.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, PLANTED};

    fn printed(planted: &str) -> String {
        let fails = PLANTED.iter().map(|(name, parts)| {
            format!("test planted::{name} ... FAILED\n\nthread 'planted::{name}' (1) panicked at src/planted.rs:1:1:\n{}\n\n", parts.join("\n"))
        });
        let passes = (0..189).map(|number| format!("test t{number} - should panic ... ok\n"));
        fails.chain(passes).collect::<String>() + planted
    }

    #[test]
    fn each_other_outcome_is_a_defect() {
        let of = |planted: &str| Outcome::of(&printed(planted)).defects().len();
        assert_eq!(of("test last ... ok\n"), 0);
        assert_eq!(of("test last ... FAILED\n"), 1);
        assert_eq!(of(""), 1, "a test is missing");
        assert_eq!(of("test planted::an_order_exceeds_its_budget ... ok\n"), 2, "it must fail");
        let nextest = "test m01::b ... FAILED\n    PASS [   0.1s] (  1/200) suite::outside m00::a\n    FAIL [ 0.2s] (2/200) suite m01::b\n";
        let outcome = Outcome::of(nextest);
        assert_eq!(outcome.passed.values().collect::<Vec<_>>(), [&true, &false]);
    }

    #[test]
    fn a_message_without_the_defect_is_a_defect() {
        let text = printed("test last ... ok\n").replace("UNREPORTED", "OTHER");
        let defects = Outcome::of(&text).defects();
        assert_eq!(defects.len(), 1, "{defects:?}");
        assert!(defects[0].contains("does not say"), "{defects:?}");
    }
}
