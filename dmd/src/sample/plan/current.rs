//! The plan in force, and the options that it was made from.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

use super::{AWAKE, DECIDED, EVENTS, OBSERVED, Plan};
use crate::sample::options::{Mode, Options, Stacks};
use crate::sample::rate::{Probability, SamplingRate, TooManyRates};
use crate::sample::sampler;

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
pub(crate) fn set_asleep() {
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
    let is_partial = options.effective_stacks() == Stacks::Partial && !is_profile;
    set_own_rate(if is_partial { SamplingRate::PARTIAL } else { rate });
    MODE.store(options.mode as u8, Relaxed);
    SHOWS_STATS.store(options.show_dump_stats, Relaxed);
    SAMPLE_BYTES.store(if is_profile { options.sample_bytes.get() } else { 0 }, Relaxed);
    let plan = Plan::of(options);
    update(|before| Plan(plan.0 | before.0 & (EVENTS | OBSERVED)));
    Ok(plan)
}

/// No further block enters the table.
pub(crate) fn stop_inserting() {
    let now = plan();
    if now.is_awake() {
        // Release, with the Acquire of `has_gaps`: whoever misses a block knows that it may be missing.
        HAS_GAPS.store(true, Release);
        update(Plan::without_inserting);
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
        sampler::set_rate(rate);
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
pub(crate) fn start_observing(rate: SamplingRate) {
    if !plan().inserts_all() {
        // As in `stop_inserting`.
        HAS_GAPS.store(true, Release);
    }
    OBSERVED_RATE.store(rate.number(), Relaxed);
    sampler::set_rate(SamplingRate::SUSPENDED);
    update(|plan| Plan(plan.0 | DECIDED | AWAKE | OBSERVED));
}

/// Nobody observes single allocations any more.
pub(crate) fn stop_observing() {
    update(|plan| Plan(plan.0 & !OBSERVED));
    sampler::set_rate(SamplingRate::from_number(OWN_RATE.load(Relaxed)));
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
pub(crate) fn start_events() {
    update(|plan| Plan(plan.0 | EVENTS));
}

/// Nobody wants to hear of single blocks any more.
pub(crate) fn stop_events() {
    update(|plan| Plan(plan.0 & !EVENTS));
}

fn update(change: impl Fn(Plan) -> Plan) {
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
