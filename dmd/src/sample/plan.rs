//! The plan: what the hooks do, as bits of one word.

mod gaps;
mod current;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use self::current::{
    WholePlan, begin, mode, observed_rate, options, own_probability, plan, set_asleep, set_c_heap,
    set_epoch, set_incomplete, set_prepared, set_unfiltered, shows_stats, start_events,
    start_observing, stop_events, stop_inserting, stop_observing, whole_plan,
};
pub(crate) use self::gaps::{GapLimit, has_gaps, set_unknown as set_unknown_gap};
pub(crate) use self::state::state;
use super::options::{Mode, Options, Stacks};

/// The bits that decide what the hooks do.
///
/// | mode | `INSERTS` | `SAMPLES` | `STACKS` | `PARTIAL_STACKS` | `COUNTS_FREED` | `TIMES` |
/// |---|---|---|---|---|---|---|
/// | asleep, or off | | | | | | |
/// | `live`, `dark-matter`, `scan` | x | | x | | | |
/// | `cumulative` | x | | x | | x | |
/// | `profile` | x | x | x | | | |
/// | any with `--stacks=partial`, but `profile` | x | | x | x | as above | |
/// | any with `--stacks=none`, but `scan` | x | as above | | | as above | |
/// | any with `--times=yes` | x | as above | as above | as above | as above | x |
///
/// `EACH` is set wherever `INSERTS` is and `SAMPLES` is not: one bit to test.
///
/// `FREE_STACKS` is set beside `STACKS` by recordings that want it.
///
/// `DECIDED` is set once `$DMD` was read, `AWAKE` from the start of tracking on, also while it is
/// off. `EVENTS` and `OBSERVED` are set beside any mode, by recordings, journals and observers.
/// `UNPREPARED` is cleared once `$DMD` was read, if at all. `FILTERED` is set from a profile on,
/// unless the process has ever inserted other blocks than sampled ones, or more sampled blocks than
/// the compact table has space for. `COMPLETE` is set from the first block of the process on, as
/// long as every new block is inserted without a time, and its word has its sizes: or else the hook
/// that frees it queries its size, and so looks at the word.
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
const EVENTS: u32 = 1 << 7;
/// New blocks get the time of their allocation.
const TIMES: u32 = 1 << 8;
/// Single allocations are observed: a sampled one gets a stack and a time, and goes into the logs.
const OBSERVED: u32 = 1 << 9;
/// Events of freed blocks have the stack of the free.
const FREE_STACKS: u32 = 1 << 10;

/// The inner allocator's sizes are not prepared: `UsableSize::prepared_size` must not be called.
const UNPREPARED: u32 = 1 << 11;
/// Every new block is inserted.
const EACH: u32 = 1 << 12;
/// All blocks in the table are in the filter of sampled blocks.
const FILTERED: u32 = 1 << 13;

/// A preloaded library passes the calls of C's functions to the hooks. Set beside `UNPREPARED`,
/// from the first block on.
const C_HEAP: u32 = 1 << 14;

/// Every live block is in the tree. Its word has its sizes, unless it extends into another span.
const COMPLETE: u32 = 1 << 15;

/// Removals do not look at the words of small blocks: one bit to test.
const REMOVES_UNSEEN: u32 = 1 << 16;

/// The number of the current epoch, from 1 to 3.
const EPOCH: u32 = 3 << EPOCH_SHIFT;
const EPOCH_SHIFT: u32 = 30;

/// Removals do more than update the table, or freeing takes more than a call.
const WATCHES_FREES: u32 = COUNTS_FREED | EVENTS | OBSERVED | FILTERED | C_HEAP;

/// The way in which a new block gets into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// Not at all: tracking is off.
    Nothing,
    /// With the site that the thread has cached, which has no stack.
    WithoutStack,
    /// With its site; the plan decides which blocks get a stack.
    WithSite,
    /// With its site and the time.
    Timed,
    /// With its site and the time, and into the logs of observers, if it is sampled.
    Observed,
}

impl Plan {
    /// The plan before `$DMD` is read.
    pub(crate) const UNDECIDED: Plan = Plan(UNPREPARED | 1 << EPOCH_SHIFT);

    fn of(options: Options) -> Plan {
        let stacks = match options.effective_stacks() {
            Stacks::Full => STACKS,
            // A profile has no partial stacks: every sampled block gets one.
            Stacks::Partial if options.mode == Mode::Profile => STACKS,
            Stacks::Partial => STACKS | PARTIAL_STACKS,
            Stacks::None => 0,
        };
        let more = match options.mode {
            Mode::Live | Mode::DarkMatter | Mode::Scan => EACH,
            Mode::Cumulative => EACH | COUNTS_FREED,
            Mode::Profile => SAMPLES,
        };
        let times = if options.times { TIMES } else { 0 };
        let frees = if options.free_stacks && stacks != 0 { FREE_STACKS } else { 0 };
        Plan(DECIDED | AWAKE | INSERTS | stacks | more | times | frees)
    }

    /// Returns the plan without insertions. Hooks still remove freed blocks.
    fn without_inserting(self) -> Plan {
        let insertions = INSERTS | EACH | SAMPLES | STACKS | PARTIAL_STACKS | TIMES | FREE_STACKS;
        Plan(self.0 & !(insertions | COMPLETE))
    }

    /// Returns the plan in one word, which is never 0.
    #[inline(always)]
    pub(crate) fn word(self) -> u32 {
        self.0
    }

    /// Returns the number of the epoch.
    #[inline(always)]
    pub(crate) fn epoch(self) -> u8 {
        (self.0 >> EPOCH_SHIFT) as u8
    }

    /// Returns whether hooks of frees only count bytes, and sizes are prepared.
    #[inline(always)]
    pub(crate) fn is_asleep_and_prepared(self) -> bool {
        self.0 & (AWAKE | UNPREPARED) == 0
    }

    /// Returns whether new blocks are only counted until their thread reaches its stop.
    #[inline(always)]
    pub(crate) fn has_stops(self) -> bool {
        self.0 & (EACH | OBSERVED) == 0
    }

    /// Returns whether the inner allocator's sizes are prepared.
    #[inline(always)]
    pub(crate) fn is_prepared(self) -> bool {
        !self.has(UNPREPARED)
    }

    /// Returns whether all blocks in the table are in the filter of sampled blocks.
    #[inline(always)]
    pub(crate) fn is_filtered(self) -> bool {
        self.has(FILTERED)
    }

    /// Returns whether all blocks in the table are in the filter of sampled blocks, and sizes are
    /// prepared.
    #[inline(always)]
    pub(crate) fn is_filtered_and_prepared(self) -> bool {
        self.0 & (FILTERED | UNPREPARED) == FILTERED
    }

    /// Returns whether inserted blocks belong into the compact table of sampled ones.
    #[inline(always)]
    pub(crate) fn inserts_sampled(self) -> bool {
        self.0 & (SAMPLES | OBSERVED) == SAMPLES || self.has(FILTERED)
    }

    /// Returns whether every new block is inserted with its site, with a stack or without.
    #[inline(always)]
    pub(crate) fn inserts_each_with_site(self) -> bool {
        const EACH_INSERTED: u32 = DECIDED | INSERTS | EACH;
        self.0 & (EACH_INSERTED | TIMES | OBSERVED) == EACH_INSERTED
    }

    /// Returns the way in which a new block gets into the table. The usual ways take two tests.
    #[inline(always)]
    pub(crate) fn insertion(self) -> Insertion {
        if self.0 & (DECIDED | INSERTS | TIMES | OBSERVED) == DECIDED | INSERTS {
            return match self.has(STACKS | EVENTS) {
                true => Insertion::WithSite,
                false => Insertion::WithoutStack,
            };
        }
        match self {
            _ if self.has(OBSERVED) => Insertion::Observed,
            _ if self.has(INSERTS) => Insertion::Timed,
            _ => Insertion::Nothing,
        }
    }

    /// Returns whether calls of C's functions come to the hooks, too.
    #[inline(always)]
    pub(crate) fn has_c_heap(self) -> bool {
        self.has(C_HEAP)
    }

    /// Returns whether `$DMD` was read.
    pub(crate) fn is_decided(self) -> bool {
        self.has(DECIDED)
    }

    /// Returns whether only sampled blocks are inserted, and sizes are prepared.
    #[inline(always)]
    pub(crate) fn samples_prepared(self) -> bool {
        self.0 & (SAMPLES | UNPREPARED) == SAMPLES
    }

    /// Returns whether every new block is inserted, and insertions only update the table. The rate
    /// of these blocks is [`SamplingRate::EVERY`](super::rate::SamplingRate::EVERY).
    #[inline(always)]
    pub(crate) fn inserts_simply(self) -> bool {
        self.0 & (EACH | SAMPLES | EVENTS | FILTERED) == EACH
    }

    /// Returns whether every new block is inserted without a stack, and insertions only update the
    /// table: so the words of a thread's blocks differ in their sizes only.
    pub(crate) fn inserts_prepared(self) -> bool {
        self.inserts_simply() && self.insertion() == Insertion::WithoutStack
    }

    /// Returns whether the table is kept, removals only update it, and blocks are not sampled.
    #[inline(always)]
    pub(crate) fn removes_simply_unsampled(self) -> bool {
        self.0 & (AWAKE | WATCHES_FREES | SAMPLES) == AWAKE
    }

    /// Returns whether a small block is removed without a look at its word: this is known to have
    /// no more than the sizes, and these are prepared.
    #[inline(always)]
    pub(crate) fn removes_unseen(self) -> bool {
        self.has(REMOVES_UNSEEN)
    }

    /// Returns whether every live block is in the tree, and its word has its sizes unless it
    /// extends into another span or its size takes a query.
    #[inline(always)]
    pub(crate) fn is_complete(self) -> bool {
        self.has(COMPLETE)
    }

    /// Returns the plan for a block that may have a record while the table stays complete.
    pub(crate) fn without_complete(self) -> Plan {
        Plan(self.0 & !COMPLETE)
    }

    /// Returns whether the table is complete under this plan, which follows another one: from the
    /// first block of the process on, every block was inserted, and none has a time.
    fn is_complete_after(self, before: Plan) -> bool {
        let was_complete = !before.has(DECIDED) || before.is_complete();
        was_complete && !before.is_observed() && self.0 & (EACH | TIMES) == EACH
    }

    /// Returns the plan with the bits that follow from others.
    fn derived(self) -> Plan {
        const BITS: u32 = AWAKE | COMPLETE;
        let is_unseen = self.0 & (BITS | WATCHES_FREES | SAMPLES | UNPREPARED) == BITS;
        let unseen = if is_unseen { REMOVES_UNSEEN } else { 0 };
        Plan(self.0 & !REMOVES_UNSEEN | unseen)
    }

    /// Returns whether the table is kept, and removals only update it.
    #[inline(always)]
    pub(crate) fn removes_simply(self) -> bool {
        self.0 & (AWAKE | WATCHES_FREES) == AWAKE
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

    /// Returns whether every new block is inserted.
    pub(crate) fn inserts_all(self) -> bool {
        self.has(EACH)
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

    /// Returns whether insertions and removals write events.
    #[inline(always)]
    pub(crate) fn writes_events(self) -> bool {
        self.has(EVENTS)
    }

    /// Returns whether events of freed blocks have the stack of the free.
    #[inline(always)]
    pub(crate) fn has_free_stacks(self) -> bool {
        self.has(FREE_STACKS)
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
