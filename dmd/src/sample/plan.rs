//! What the hooks do, in one word: each mode is a row of answers.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

use super::options::{Mode, Options, Stacks};
use super::rate::{Chance, Rate, TooManyRates};
use super::sampler as sample;

/// What the hooks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan(u32);

/// `$DMD` was looked at.
const DECIDED: u32 = 1;
/// The table is kept: whatever is given back is looked for in it.
const AWAKE: u32 = 1 << 1;
/// New blocks enter the table.
const ENTERS: u32 = 1 << 2;
/// Only those that the sampler hits.
const SAMPLES: u32 = 1 << 3;
/// They get their stacks.
const STACKS: u32 = 1 << 4;
/// Only those that the sampler hits.
const PARTIAL_STACKS: u32 = 1 << 5;
/// Blocks that are given back are counted.
const COUNTS_DEAD: u32 = 1 << 6;
/// A thread keeps a journal.
const JOURNALS: u32 = 1 << 7;
/// New blocks get the time at which they are made.
const TIMES: u32 = 1 << 8;
/// Somebody observes single allocations: who wins a draw gets a stack and a time, enters, and goes into the logs.
const OBSERVED: u32 = 1 << 9;

impl Plan {
    /// `$DMD` was not looked at yet.
    pub(crate) const UNDECIDED: Plan = Plan(0);
    /// Count bytes, and nothing else.
    pub(crate) const ASLEEP: Plan = Plan(DECIDED);

    fn of(options: Options) -> Plan {
        let stacks = match options.which_stacks() {
            Stacks::Full => STACKS,
            // Under a profile a block is in the sample or it is not; once in, it has a stack.
            Stacks::Partial if options.mode == Mode::Profile => STACKS,
            Stacks::Partial => STACKS | PARTIAL_STACKS,
            Stacks::None => 0,
        };
        let more = match options.mode {
            Mode::Live | Mode::DarkMatter | Mode::Scan => 0,
            Mode::Cumulative => COUNTS_DEAD,
            Mode::Profile => SAMPLES,
        };
        let times = if options.times { TIMES } else { 0 };
        Plan(DECIDED | AWAKE | ENTERS | stacks | more | times)
    }

    /// No new block enters; those that are in the table go as ever.
    fn without_entering(self) -> Plan {
        Plan(self.0 & !(ENTERS | SAMPLES | STACKS | PARTIAL_STACKS | TIMES))
    }

    const fn has(self, what: u32) -> bool {
        self.0 & what != 0
    }

    #[inline(always)]
    pub(crate) fn is_decided(self) -> bool {
        self.has(DECIDED)
    }

    #[inline(always)]
    pub(crate) fn is_awake(self) -> bool {
        self.has(AWAKE)
    }

    #[inline(always)]
    pub(crate) fn enters(self) -> bool {
        self.has(ENTERS)
    }

    /// Blocks enter without a time, and nobody observes single ones.
    #[inline(always)]
    pub(crate) fn enters_as_ever(self) -> bool {
        self.0 & (ENTERS | TIMES | OBSERVED) == ENTERS
    }

    /// Every block enters.
    pub(crate) fn enters_all(self) -> bool {
        self.0 & (ENTERS | SAMPLES) == ENTERS
    }

    #[inline(always)]
    pub(crate) fn is_observed(self) -> bool {
        self.has(OBSERVED)
    }

    #[inline(always)]
    pub(crate) fn samples(self) -> bool {
        self.has(SAMPLES)
    }

    #[inline(always)]
    pub(crate) fn has_stacks(self) -> bool {
        self.has(STACKS)
    }

    #[inline(always)]
    pub(crate) fn has_partial_stacks(self) -> bool {
        self.has(PARTIAL_STACKS)
    }

    /// Every block enters, none gets a stack or a time, and nobody wants to hear of single blocks.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & (ENTERS | STACKS | JOURNALS | TIMES | OBSERVED) == ENTERS
    }

    /// Somebody wants to hear of single blocks.
    #[inline(always)]
    pub(crate) fn is_watched(self) -> bool {
        self.has(COUNTS_DEAD | JOURNALS)
    }

    /// Somebody wants to know of blocks that are given back.
    #[inline(always)]
    pub(crate) fn is_heard_at_end(self) -> bool {
        self.has(COUNTS_DEAD | JOURNALS | OBSERVED)
    }

    #[inline(always)]
    pub(crate) fn keeps_times(self) -> bool {
        self.has(TIMES | OBSERVED)
    }

    #[inline(always)]
    pub(crate) fn counts_dead(self) -> bool {
        self.has(COUNTS_DEAD)
    }
}

static PLAN: AtomicU32 = AtomicU32::new(Plan::UNDECIDED.0);

/// The options that the plan was made from: mode and the wish for statistics; for dumps.
static MODE: AtomicU8 = AtomicU8::new(Mode::DarkMatter as u8);
static SHOWS_STATS: AtomicBool = AtomicBool::new(false);
/// The mean of the samples, in bytes; 0 where every block enters.
static SAMPLE_BYTES: AtomicU64 = AtomicU64::new(0);

/// Whether live blocks may be missing from the table: those from before tracking began, from while it was off, and those
/// that were not sampled.
static HAS_GAPS: AtomicBool = AtomicBool::new(false);

/// What the hooks do now.
#[inline(always)]
pub(crate) fn plan() -> Plan {
    Plan(PLAN.load(Relaxed))
}

/// Nobody asked for tracking.
pub(crate) fn sleep() {
    PLAN.store(Plan::ASLEEP.0, Relaxed);
}

/// From now on blocks enter the table as the options say. What was decided before tells whether earlier blocks are missing.
pub(crate) fn begin(options: Options) -> Result<Plan, TooManyRates> {
    let is_profile = options.mode == Mode::Profile;
    let chance = Chance::of_bytes(options.sample_bytes);
    let rate = if is_profile { Rate::of(chance)? } else { Rate::EVERY };
    let before = plan();
    if is_profile || before.has(DECIDED) && (!before.enters() || before.samples()) {
        HAS_GAPS.store(true, Release);
    }
    let is_partial = options.which_stacks() == Stacks::Partial && !is_profile;
    set_own_rate(if is_partial { Rate::PARTIAL } else { rate });
    MODE.store(options.mode as u8, Relaxed);
    SHOWS_STATS.store(options.show_dump_stats, Relaxed);
    SAMPLE_BYTES.store(if is_profile { options.sample_bytes.get() } else { 0 }, Relaxed);
    let plan = Plan::of(options);
    replace(|before| Plan(plan.0 | before.0 & (JOURNALS | OBSERVED)));
    Ok(plan)
}

/// No further block enters the table.
pub(crate) fn stop_entering() {
    let now = plan();
    if now.is_awake() {
        // Release, with the Acquire of `has_gaps`: whoever misses a block knows that it may be missing.
        HAS_GAPS.store(true, Release);
        replace(Plan::without_entering);
    }
}

/// The rate of the draws that the options ask for.
static OWN_RATE: AtomicU8 = AtomicU8::new(Rate::EVERY.number());

/// The rate of the draws for those who observe single allocations.
static OBSERVED_RATE: AtomicU8 = AtomicU8::new(Rate::EVERY.number());

fn set_own_rate(rate: Rate) {
    OWN_RATE.store(rate.number(), Relaxed);
    // While single allocations are observed, their draws are the only ones.
    if !plan().is_observed() {
        sample::set_rate(rate);
    }
}

/// The chance of a profile that goes on.
pub(crate) fn own_chance() -> Option<Chance> {
    let own = Rate::from_number(OWN_RATE.load(Relaxed));
    plan().samples().then(|| own.chance())
}

/// The rate of the draws for those who observe single allocations.
#[inline]
pub(crate) fn observed_rate() -> Rate {
    Rate::from_number(OBSERVED_RATE.load(Relaxed))
}

/// From now on single allocations are observed at this rate.
pub(crate) fn observe(rate: Rate) {
    if !plan().enters_all() {
        // As in `stop_entering`.
        HAS_GAPS.store(true, Release);
    }
    OBSERVED_RATE.store(rate.number(), Relaxed);
    sample::set_rate(Rate::HELD);
    replace(|plan| Plan(plan.0 | DECIDED | AWAKE | OBSERVED));
}

/// Nobody observes single allocations any more.
pub(crate) fn observe_no_more() {
    replace(|plan| Plan(plan.0 & !OBSERVED));
    sample::set_rate(Rate::from_number(OWN_RATE.load(Relaxed)));
}

/// The chance of blocks that enter, where not all do.
pub(crate) fn sampled_chance() -> Option<Chance> {
    let plan = plan();
    match observed_rate() {
        rate if plan.is_observed() && !plan.enters_all() && rate != Rate::EVERY => {
            Some(rate.chance())
        }
        _ => NonZeroU64::new(SAMPLE_BYTES.load(Relaxed)).map(Chance::of_bytes),
    }
}

/// From now on threads with a journal hear of their blocks.
pub(crate) fn note_blocks() {
    replace(|plan| Plan(plan.0 | JOURNALS));
}

/// Nobody wants to hear of single blocks any more.
pub(crate) fn ignore_blocks() {
    replace(|plan| Plan(plan.0 & !JOURNALS));
}

fn replace(change: impl Fn(Plan) -> Plan) {
    let _ = PLAN.fetch_update(Relaxed, Relaxed, |now| Some(change(Plan(now)).0));
}

/// Whether live blocks may be missing from the table.
pub(crate) fn has_gaps() -> bool {
    HAS_GAPS.load(Acquire)
}

/// What is kept of the blocks.
pub(crate) fn mode() -> Mode {
    let number = MODE.load(Relaxed);
    Mode::ALL.into_iter().find(|mode| *mode as u8 == number).unwrap_or(Mode::DarkMatter)
}

/// What is tracked at this moment, in words.
pub(crate) fn state() -> String {
    let plan = plan();
    let stacks = match plan {
        plan if plan.has_partial_stacks() => "partial",
        plan if plan.has_stacks() => "full",
        _ => "no",
    };
    let state = match sample_bytes() {
        _ if !plan.is_awake() => "asleep: `about-memory track` wakes it".to_owned(),
        _ if !plan.enters() && plan.is_observed() => "off, but for single allocations".to_owned(),
        _ if !plan.enters() => "off: new blocks are not entered".to_owned(),
        Some(bytes) => format!("{}, a sample each {bytes} bytes", mode().name()),
        None => format!("{}, {stacks} stacks", mode().name()),
    };
    if plan.is_observed() { state + ", which are observed" } else { state }
}

/// Whether statistics of each dump are asked for.
pub(crate) fn shows_stats() -> bool {
    SHOWS_STATS.load(Relaxed)
}

/// The bytes between two samples on average; `None` where every block enters.
pub(crate) fn sample_bytes() -> Option<u64> {
    Some(SAMPLE_BYTES.load(Relaxed)).filter(|bytes| *bytes != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_is_a_row() {
        let row = |options| {
            let plan = Plan::of(options);
            [
                plan.is_awake() && plan.enters(),
                plan.samples(),
                plan.has_stacks(),
                plan.has_partial_stacks(),
                plan.counts_dead(),
            ]
        };
        let of = |mode, stacks| Options::default().mode(mode).stacks(stacks);
        let table = [
            (of(Mode::Live, Stacks::Full), [true, false, true, false, false]),
            (of(Mode::DarkMatter, Stacks::Partial), [true, false, true, true, false]),
            (of(Mode::DarkMatter, Stacks::None), [true, false, false, false, false]),
            (of(Mode::Cumulative, Stacks::None), [true, false, false, false, true]),
            (of(Mode::Scan, Stacks::None), [true, false, true, false, false]),
            (of(Mode::Profile, Stacks::Partial), [true, true, true, false, false]),
            (of(Mode::Profile, Stacks::None), [true, true, false, false, false]),
        ];
        for (options, expected) in table {
            assert_eq!(row(options), expected, "{options:?}");
        }
    }

    #[test]
    fn what_no_longer_enters_still_leaves() {
        let plan = Plan::of(Options::default().mode(Mode::Cumulative)).without_entering();
        assert!(plan.is_awake() && plan.counts_dead() && !plan.enters() && !plan.has_stacks());
    }
}
