//! A clock for hooks that stamp every event: the processor's counter, where the kernel itself
//! trusts it.
//!
//! Reading it takes less than half the time of the monotonic clock. Readers of events convert the
//! counter with two readings of both.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "an instruction of the processor")
)]

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::Current;
use super::system::{System, monotonic};

/// True if ticks are of the counter, and not nanoseconds of the monotonic clock.
static USES_COUNTER: AtomicBool = AtomicBool::new(false);

/// Returns the time in ticks of a [`TickClock`]. Hooks may call it.
#[inline]
pub(crate) fn ticks() -> u64 {
    // Relaxed: the clock is chosen before a reader begins, which discards earlier events.
    if USES_COUNTER.load(Relaxed) { counter() } else { monotonic() }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction. A process that has forbidden it to itself
    // (`PR_SET_TSC`) cannot read the kernel's clock either, which uses it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn counter() -> u64 {
    monotonic()
}

/// Converts ticks to nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickClock {
    first: Reading,
    /// The nanoseconds of a tick, times 2^32.
    scale: u64,
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    nanoseconds: u64,
}

impl Reading {
    fn now() -> Self {
        Reading { ticks: ticks(), nanoseconds: monotonic() }
    }
}

impl TickClock {
    /// Chooses the clock of hooks, and begins to compare it with the monotonic one.
    pub(crate) fn begin() -> Self {
        let is_trusted = cfg!(all(target_arch = "x86_64", not(miri))) && Current::trusts_counter();
        USES_COUNTER.store(is_trusted, Relaxed);
        TickClock { first: Reading::now(), scale: 1 << 32 }
    }

    /// Compares the clocks again.
    pub(crate) fn compare(&mut self) {
        self.compare_with(Reading::now());
    }

    fn compare_with(&mut self, now: Reading) {
        let ticks = u128::from(now.ticks.saturating_sub(self.first.ticks));
        let passed = u128::from(now.nanoseconds.saturating_sub(self.first.nanoseconds)) << 32;
        let scale = passed.checked_div(ticks).and_then(|scale| u64::try_from(scale).ok());
        self.scale = scale.unwrap_or(self.scale);
    }

    /// Returns the nanoseconds of the monotonic clock. They are exact to some 100 ns.
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        let passed = i128::from(ticks) - i128::from(self.first.ticks);
        let passed = (passed * i128::from(self.scale)) >> 32;
        u64::try_from(i128::from(self.first.nanoseconds) + passed).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_converted_by_two_readings() {
        let first = Reading { ticks: 5000, nanoseconds: 1_000_000 };
        let mut clock = TickClock { first, scale: 1 << 32 };
        assert_eq!(clock.nanoseconds(7000), 1_002_000);
        clock.compare_with(first);
        assert_eq!(clock.nanoseconds(7000), 1_002_000);
        // Four ticks are a nanosecond.
        clock.compare_with(Reading { ticks: 45_000, nanoseconds: 1_010_000 });
        assert_eq!(clock.nanoseconds(9000), 1_001_000);
        assert_eq!(clock.nanoseconds(1000), 999_000);
        assert_eq!(clock.nanoseconds(85_000), 1_020_000);
    }

    #[test]
    fn the_counter_keeps_step_with_the_monotonic_clock() {
        let mut clock = TickClock::begin();
        let begin = monotonic();
        while monotonic() < begin + 2_000_000 {}
        clock.compare();
        let (before, stamp, after) = (monotonic(), ticks(), monotonic());
        let converted = clock.nanoseconds(stamp);
        // A thousandth of the time since the first reading, and the two clocks' reading times.
        let slack = (after - begin) / 1000 + 10_000;
        assert!(converted + slack >= before && converted <= after + slack, "{clock:?}");
    }
}
