//! What the hooks do, in one word: each mode is a row of answers.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

use super::options::{Mode, Options, Stacks};
use super::rate::{Probability, SamplingRate, TooManyRates};
use super::sampler as sample;

/// The bits that decide what the hooks do.
///
/// | mode, option | `INSERTS` | `SAMPLES` | `STACKS` | `PARTIAL_STACKS` | `COUNTS_FREED` | `TIMES` |
/// |---|---|---|---|---|---|---|
/// | asleep, or off | | | | | | |
/// | `live`, `dark-matter`, `scan` | x | | x | | | |
/// | `cumulative` | x | | x | | x | |
/// | `profile` | x | x | x | | | |
/// | any with `--stacks=partial`, but `profile` | x | | x | x | as above | |
/// | any with `--stacks=none`, but `scan` | x | as above | | | as above | |
/// | any with `--times=yes` | x | as above | as above | as above | as above | x |
///
/// `DECIDED` is set once `$DMD` was read, `AWAKE` from the start of tracking on, also while it is
/// off. `JOURNALS` and `OBSERVED` are set beside any mode, by recordings, journals and observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan(u32);

/// `$DMD` was read.
const DECIDED: u32 = 1;
/// The table is kept: every freed block is looked up in it.
const AWAKE: u32 = 1 << 1;
/// New blocks are inserted into the table.
const INSERTS: u32 = 1 << 2;
/// Only sampled blocks are inserted.
const SAMPLES: u32 = 1 << 3;
/// Inserted blocks get their stacks.
const STACKS: u32 = 1 << 4;
/// Only sampled blocks get stacks.
const PARTIAL_STACKS: u32 = 1 << 5;
/// Freed blocks are counted.
const COUNTS_FREED: u32 = 1 << 6;
/// Events of single blocks are written, to a recording or to the journal of a thread.
const JOURNALS: u32 = 1 << 7;
/// New blocks get the time of their allocation.
const TIMES: u32 = 1 << 8;
/// Single allocations are observed: a sampled one gets a stack and a time, and goes into the logs.
const OBSERVED: u32 = 1 << 9;

/// The first decision of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Counts bytes only.
    Asleep,
    /// Draws a sample; most blocks are skipped.
    Profile,
    /// Keeps the table.
    Table,
}

/// The way in which a new block gets into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// `$DMD` was not read yet: this is the first block.
    Undecided,
    /// Not at all: tracking is off.
    Nothing,
    /// With the site that the thread remembers, which has no stack.
    WithoutStack,
    /// With its site; the plan says which blocks get a stack.
    WithSite,
    /// With its site and the time.
    Timed,
    /// With its site and the time, and into the logs of observers, if it is sampled.
    Observed,
}

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
            Mode::Cumulative => COUNTS_FREED,
            Mode::Profile => SAMPLES,
        };
        let times = if options.times { TIMES } else { 0 };
        Plan(DECIDED | AWAKE | INSERTS | stacks | more | times)
    }

    /// No new block enters; those that are in the table go as ever.
    fn without_inserting(self) -> Plan {
        Plan(self.0 & !(INSERTS | SAMPLES | STACKS | PARTIAL_STACKS | TIMES))
    }

    /// Returns the first decision of a hook.
    #[inline(always)]
    pub(crate) fn path(self) -> Path {
        if self.samples() {
            Path::Profile
        } else if self == Plan::ASLEEP {
            Path::Asleep
        } else {
            Path::Table
        }
    }

    /// Returns the way in which a new block gets into the table. The usual ways take two tests.
    #[inline(always)]
    pub(crate) fn insertion(self) -> Insertion {
        if self.0 & (DECIDED | INSERTS | TIMES | OBSERVED) == DECIDED | INSERTS {
            return match self.has(STACKS | JOURNALS) {
                true => Insertion::WithSite,
                false => Insertion::WithoutStack,
            };
        }
        match self {
            _ if !self.has(DECIDED) => Insertion::Undecided,
            _ if self.has(OBSERVED) => Insertion::Observed,
            _ if self.has(INSERTS) => Insertion::Timed,
            _ => Insertion::Nothing,
        }
    }

    const fn has(self, what: u32) -> bool {
        self.0 & what != 0
    }

    #[inline(always)]
    pub(crate) fn is_awake(self) -> bool {
        self.has(AWAKE)
    }

    #[inline(always)]
    pub(crate) fn inserts(self) -> bool {
        self.has(INSERTS)
    }

    /// Every block enters.
    pub(crate) fn inserts_all(self) -> bool {
        self.0 & (INSERTS | SAMPLES) == INSERTS
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

    /// Somebody wants to hear of single blocks.
    #[inline(always)]
    pub(crate) fn is_watched(self) -> bool {
        self.has(COUNTS_FREED | JOURNALS)
    }

    /// Somebody wants to know of blocks that are given back.
    #[inline(always)]
    pub(crate) fn watches_frees(self) -> bool {
        self.has(COUNTS_FREED | JOURNALS | OBSERVED)
    }

    #[inline(always)]
    pub(crate) fn keeps_times(self) -> bool {
        self.has(TIMES | OBSERVED)
    }

    #[inline(always)]
    pub(crate) fn counts_freed(self) -> bool {
        self.has(COUNTS_FREED)
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
    let probability = Probability::of_bytes(options.sample_bytes);
    let rate = if is_profile { SamplingRate::of(probability)? } else { SamplingRate::EVERY };
    let before = plan();
    if is_profile || before.has(DECIDED) && (!before.inserts() || before.samples()) {
        HAS_GAPS.store(true, Release);
    }
    let is_partial = options.which_stacks() == Stacks::Partial && !is_profile;
    set_own_rate(if is_partial { SamplingRate::PARTIAL } else { rate });
    MODE.store(options.mode as u8, Relaxed);
    SHOWS_STATS.store(options.show_dump_stats, Relaxed);
    SAMPLE_BYTES.store(if is_profile { options.sample_bytes.get() } else { 0 }, Relaxed);
    let plan = Plan::of(options);
    replace(|before| Plan(plan.0 | before.0 & (JOURNALS | OBSERVED)));
    Ok(plan)
}

/// No further block enters the table.
pub(crate) fn stop_inserting() {
    let now = plan();
    if now.is_awake() {
        // Release, with the Acquire of `has_gaps`: whoever misses a block knows that it may be missing.
        HAS_GAPS.store(true, Release);
        replace(Plan::without_inserting);
    }
}

/// The rate of the draws that the options ask for.
static OWN_RATE: AtomicU8 = AtomicU8::new(SamplingRate::EVERY.number());

/// The rate of the draws for those who observe single allocations.
static OBSERVED_RATE: AtomicU8 = AtomicU8::new(SamplingRate::EVERY.number());

fn set_own_rate(rate: SamplingRate) {
    OWN_RATE.store(rate.number(), Relaxed);
    // While single allocations are observed, their draws are the only ones.
    if !plan().is_observed() {
        sample::set_rate(rate);
    }
}

/// The probability of a profile that goes on.
pub(crate) fn own_probability() -> Option<Probability> {
    let own = SamplingRate::from_number(OWN_RATE.load(Relaxed));
    plan().samples().then(|| own.probability())
}

/// The rate of the draws for those who observe single allocations.
#[inline]
pub(crate) fn observed_rate() -> SamplingRate {
    SamplingRate::from_number(OBSERVED_RATE.load(Relaxed))
}

/// From now on single allocations are observed at this rate.
pub(crate) fn observe(rate: SamplingRate) {
    if !plan().inserts_all() {
        // As in `stop_inserting`.
        HAS_GAPS.store(true, Release);
    }
    OBSERVED_RATE.store(rate.number(), Relaxed);
    sample::set_rate(SamplingRate::HELD);
    replace(|plan| Plan(plan.0 | DECIDED | AWAKE | OBSERVED));
}

/// Nobody observes single allocations any more.
pub(crate) fn observe_no_more() {
    replace(|plan| Plan(plan.0 & !OBSERVED));
    sample::set_rate(SamplingRate::from_number(OWN_RATE.load(Relaxed)));
}

/// The probability of blocks that enter, where not all do.
pub(crate) fn sampled_probability() -> Option<Probability> {
    let plan = plan();
    match observed_rate() {
        rate if plan.is_observed() && !plan.inserts_all() && rate != SamplingRate::EVERY => {
            Some(rate.probability())
        }
        _ => NonZeroU64::new(SAMPLE_BYTES.load(Relaxed)).map(Probability::of_bytes),
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
        _ if !plan.inserts() && plan.is_observed() => "off, but for single allocations".to_owned(),
        _ if !plan.inserts() => "off: new blocks are not entered".to_owned(),
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
                plan.is_awake() && plan.inserts(),
                plan.samples(),
                plan.has_stacks(),
                plan.has_partial_stacks(),
                plan.counts_freed(),
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
        let plan = Plan::of(Options::default().mode(Mode::Cumulative)).without_inserting();
        assert!(plan.is_awake() && plan.counts_freed() && !plan.inserts() && !plan.has_stacks());
    }
}
