//! The state of tracking, as text for users.

use super::Plan;
use super::current::{mode, plan, sample_bytes};
use crate::sample::options::Mode;

/// Returns the state of tracking, as text for users.
pub(crate) fn state() -> String {
    describe(plan(), mode(), sample_bytes())
}

/// Returns a plan as text for users. `sample_bytes` is the mean distance between samples.
fn describe(plan: Plan, mode: Mode, sample_bytes: Option<u64>) -> String {
    let stacks = match plan {
        plan if plan.has_partial_stacks() => "partial",
        plan if plan.has_stacks() => "full",
        _ => "no",
    };
    let state = match sample_bytes {
        _ if !plan.is_awake() => "asleep: `about-memory track` wakes it".to_owned(),
        _ if !plan.inserts() && plan.is_observed() => "off, but for single allocations".to_owned(),
        _ if !plan.inserts() => "off: new blocks are not tracked".to_owned(),
        Some(bytes) => format!("{}, a sample each {bytes} bytes", mode.name()),
        None => format!("{}, {stacks} stacks", mode.name()),
    };
    if plan.is_observed() { state + ", which are observed" } else { state }
}

#[cfg(test)]
mod tests {
    use super::super::{DECIDED, OBSERVED};
    use super::*;
    use crate::sample::options::{Options, Stacks};

    #[test]
    fn a_plan_is_described_by_its_mode_and_what_it_samples() {
        let of = |mode, stacks| Plan::of(Options::default().mode(mode).stacks(stacks));
        let full = of(Mode::DarkMatter, Stacks::Full);
        let observed = |plan: Plan| Plan(plan.0 | OBSERVED);
        for (plan, mode, sample_bytes, expected) in [
            (Plan(DECIDED), Mode::DarkMatter, None, "asleep: `about-memory track` wakes it"),
            (full.without_inserting(), Mode::DarkMatter, None, "off: new blocks are not tracked"),
            (full, Mode::DarkMatter, None, "dark-matter, full stacks"),
            (of(Mode::Live, Stacks::Partial), Mode::Live, None, "live, partial stacks"),
            (of(Mode::Cumulative, Stacks::None), Mode::Cumulative, None, "cumulative, no stacks"),
            (
                of(Mode::Profile, Stacks::Full),
                Mode::Profile,
                Some(64),
                "profile, a sample each 64 bytes",
            ),
            (
                observed(full),
                Mode::DarkMatter,
                None,
                "dark-matter, full stacks, which are observed",
            ),
            (
                observed(full.without_inserting()),
                Mode::DarkMatter,
                None,
                "off, but for single allocations, which are observed",
            ),
        ] {
            assert_eq!(describe(plan, mode, sample_bytes), expected, "{plan:?}");
        }
    }
}
