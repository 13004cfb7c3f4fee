//! The plan in force, and the options that it was made from.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};

use super::gaps::{self, GapLimit};
use super::{
    AWAKE, C_HEAP, COMPLETE, DECIDED, EPOCH, EPOCH_SHIFT, EVENTS, FILTERED, OBSERVED, Plan, TIMES,
    UNPREPARED,
};
use crate::mem::published::Published;
use crate::sample::options::{Mode, Options, Stacks};
use crate::sample::rate::{Probability, RateCell, SamplingRate, TooManyRates};
use crate::sample::{sampler, stops};

/// The plan. What belongs to it, such as rates and the unwinder, is stored before it.
static PLAN: Published = Published::new(Plan::UNDECIDED.0);

/// The mode and the statistics option of the plan, for dumps.
static MODE: AtomicU8 = AtomicU8::new(Mode::DarkMatter as u8);
static SHOWS_STATS: AtomicBool = AtomicBool::new(false);
/// The mean distance between samples in bytes; 0 if every block is inserted.
static SAMPLE_BYTES: AtomicU64 = AtomicU64::new(0);

/// True if other blocks than sampled ones were inserted, or the compact table was full: the table
/// may have blocks that are not in the filter of sampled ones.
static HAS_UNFILTERED: AtomicBool = AtomicBool::new(false);

/// A plan, with what is stored beside it. A collection reads it once, since it may change
/// meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholePlan {
    /// The bits that decide what the hooks do.
    pub(crate) hooks: Plan,
    pub(crate) mode: Mode,
    /// The probability of an inserted block, if blocks are sampled.
    pub(crate) probability: Option<Probability>,
    pub(crate) gap_limit: GapLimit,
}

/// Returns the plan in force, with what is stored beside it. If the plan changes at this moment,
/// parts may be of the former one.
pub(crate) fn whole_plan() -> WholePlan {
    let hooks = plan();
    WholePlan {
        hooks,
        mode: mode(),
        probability: sampled_probability(hooks),
        gap_limit: gaps::limit(),
    }
}

/// Returns the plan in force. After a change, a hook may use the former one for a moment.
#[inline(always)]
pub(crate) fn plan() -> Plan {
    Plan(PLAN.get())
}

/// Puts the hooks to sleep: they count bytes only.
pub(crate) fn set_asleep() {
    update(|before| Plan(DECIDED | before.0 & (UNPREPARED | C_HEAP)));
}

/// Notes that the inner allocator's sizes are prepared.
pub(crate) fn set_prepared() {
    update(|before| Plan(before.0 & !UNPREPARED));
}

/// Notes that calls of C's functions come to the hooks, too. Sizes must not be prepared.
pub(crate) fn set_c_heap() {
    update(|before| Plan(before.0 | C_HEAP));
}

/// Starts to insert blocks as the options request. The former plan decides whether earlier blocks
/// are missing.
pub(crate) fn begin(options: Options) -> Result<(), TooManyRates> {
    let is_profile = options.mode == Mode::Profile;
    let probability = Probability::of_bytes(options.sample_bytes);
    let rate = if is_profile { SamplingRate::of(probability)? } else { SamplingRate::EVERY };
    let before = plan();
    if is_profile || before.has(DECIDED) && (!before.inserts() || before.samples()) {
        gaps::note();
    }
    let ends_gap = before.has(DECIDED) && !before.inserts();
    if ends_gap {
        gaps::set_unknown();
    }
    let is_partial = options.effective_stacks() == Stacks::Partial && !is_profile;
    if !is_partial {
        set_own_rate(rate);
    }
    MODE.store(options.mode as u8, Relaxed);
    SHOWS_STATS.store(options.show_dump_stats, Relaxed);
    SAMPLE_BYTES.store(if is_profile { options.sample_bytes.get() } else { 0 }, Relaxed);
    let plan = Plan::of(options);
    if !plan.samples() {
        HAS_UNFILTERED.store(true, Relaxed);
    }
    update(|before| {
        // Here, so that a plan after `set_unfiltered` never has the bit.
        let filtered = if HAS_UNFILTERED.load(Relaxed) { 0 } else { FILTERED };
        let complete = if plan.is_complete_after(before) { COMPLETE } else { 0 };
        Plan(plan.0 | filtered | complete | before.0 & (EVENTS | OBSERVED | UNPREPARED | C_HEAP))
    });
    if is_partial {
        // After the plan: blocks of a profile must not get this rate, which stands for no
        // probability.
        set_own_rate(SamplingRate::PARTIAL);
    }
    if ends_gap {
        // After the plan, so that no block of the gap is missing. One that is in a gap is live now,
        // or it does not matter.
        gaps::limit_to_live();
    }
    Ok(())
}

/// Notes that a sampled block is inserted which is not in the filter.
#[cold]
pub(crate) fn set_unfiltered() {
    HAS_UNFILTERED.store(true, Relaxed);
    update(|plan| Plan(plan.0 & !FILTERED));
}

/// Notes that a block is inserted whose sizes are in a record, though it lies in one span and its
/// size takes no query.
#[cold]
pub(crate) fn set_incomplete() {
    update(|plan| Plan(plan.0 & !COMPLETE));
}

/// Returns the options in force; `None` if no blocks are inserted. The unwinder is chosen for good,
/// and is not among them.
pub(crate) fn options() -> Option<Options> {
    let plan = plan();
    if !plan.inserts() {
        return None;
    }
    let stacks = match plan {
        plan if plan.has_partial_stacks() => Stacks::Partial,
        plan if plan.has_stacks() => Stacks::Full,
        _ => Stacks::None,
    };
    let mut options = Options::default().mode(mode()).stacks(stacks).times(plan.has(TIMES));
    if let Some(bytes) = sample_bytes().and_then(NonZeroU64::new) {
        options = options.sample_bytes(bytes);
    }
    options.show_dump_stats = shows_stats();
    options.free_stacks = plan.has_free_stacks();
    Some(options)
}

/// Stops inserting new blocks.
pub(crate) fn stop_inserting() {
    let now = plan();
    if now.is_awake() {
        gaps::note();
        gaps::set_unknown();
        update(Plan::without_inserting);
    }
}

/// The sampling rate that the options request.
static OWN_RATE: RateCell = RateCell::new(SamplingRate::EVERY);

/// The sampling rate of observers.
static OBSERVED_RATE: RateCell = RateCell::new(SamplingRate::EVERY);

fn set_own_rate(rate: SamplingRate) {
    OWN_RATE.set(rate);
    // While single allocations are observed, the profile's own sampling is suspended.
    if !plan().is_observed() {
        set_rate(rate);
    }
}

/// Sets the rate at which threads draw.
fn set_rate(rate: SamplingRate) {
    sampler::set_rate(rate);
    stops::clear_all();
}

/// Returns the probability of a running profile.
pub(crate) fn own_probability() -> Option<Probability> {
    plan().samples().then(|| OWN_RATE.get().probability())
}

/// Returns the sampling rate of observers.
#[inline]
pub(crate) fn observed_rate() -> SamplingRate {
    OBSERVED_RATE.get()
}

/// Starts to observe single allocations at this rate.
pub(crate) fn start_observing(rate: SamplingRate) {
    if !plan().inserts_all() {
        gaps::note();
    }
    OBSERVED_RATE.set(rate);
    HAS_UNFILTERED.store(true, Relaxed);
    set_rate(SamplingRate::SUSPENDED);
    update(|plan| Plan(plan.0 & !(FILTERED | COMPLETE) | DECIDED | AWAKE | OBSERVED));
}

/// Stops observing single allocations.
pub(crate) fn stop_observing() {
    update(|plan| Plan(plan.0 & !OBSERVED));
    set_rate(OWN_RATE.get());
}

/// Returns the probability of an inserted block, if blocks are sampled.
fn sampled_probability(plan: Plan) -> Option<Probability> {
    match observed_rate() {
        rate if plan.is_observed() && !plan.inserts_all() && rate != SamplingRate::EVERY => {
            Some(rate.probability())
        }
        _ => NonZeroU64::new(SAMPLE_BYTES.load(Relaxed)).map(Probability::of_bytes),
    }
}

/// Starts to record events of single blocks.
pub(crate) fn start_events() {
    update(|plan| Plan(plan.0 | EVENTS));
}

/// Stops recording events of single blocks.
pub(crate) fn stop_events() {
    update(|plan| Plan(plan.0 & !EVENTS));
}

/// Sets the number of the epoch, and nothing else.
pub(crate) fn set_epoch(number: u8) {
    PLAN.update(|now| now & !EPOCH | u32::from(number) << EPOCH_SHIFT);
}

fn update(change: impl Fn(Plan) -> Plan) {
    PLAN.update(|now| change(Plan(now)).derived().0 & !EPOCH | now & EPOCH);
    stops::clear_all();
}

/// Returns the mode of the plan.
pub(crate) fn mode() -> Mode {
    let number = MODE.load(Relaxed);
    Mode::ALL.into_iter().find(|mode| *mode as u8 == number).unwrap_or(Mode::DarkMatter)
}

/// Returns whether each dump prints statistics.
pub(crate) fn shows_stats() -> bool {
    SHOWS_STATS.load(Relaxed)
}

/// Returns the mean distance between samples in bytes; `None` if every block is inserted.
pub(crate) fn sample_bytes() -> Option<u64> {
    Some(SAMPLE_BYTES.load(Relaxed)).filter(|bytes| *bytes != 0)
}
