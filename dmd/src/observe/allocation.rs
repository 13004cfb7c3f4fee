//! A single allocation: its block, stack, thread and time.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use memreport::__private::{all_scopes, as_own};

use crate::mem::sys;
use crate::sample::rate::SamplingRate;
use crate::stack::site::{self, SiteId};
use crate::stack::thread;
use crate::table::packed_block::Block;

/// An allocation: its address, sizes, time, call stack and thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    address: usize,
    requested: usize,
    usable: usize,
    time: Option<Instant>,
    pub(crate) site: SiteId,
    rate: SamplingRate,
}

impl Allocation {
    pub(crate) fn of(address: usize, block: Block, clock: Clock) -> Self {
        let Block { requested, usable, site, rate, time, .. } = block;
        Allocation { address, requested, usable, time: clock.instant(time), site, rate }
    }

    /// Returns the address of the block.
    #[must_use]
    pub fn address(&self) -> usize {
        self.address
    }

    /// Returns the requested size in bytes.
    #[must_use]
    pub fn requested(&self) -> usize {
        self.requested
    }

    /// Returns the usable size of the block in bytes, which is at least the requested size.
    #[must_use]
    pub fn usable(&self) -> usize {
        self.usable
    }

    /// Returns the time of the allocation.
    ///
    /// `None` for blocks that were allocated while no [`Observer`](super::Observer) was active,
    /// unless the program runs with `DMD=--times=yes`.
    #[must_use]
    pub fn time(&self) -> Option<Instant> {
        self.time
    }

    /// Returns the call stack of the allocation; empty if no stack was taken.
    #[must_use]
    pub fn stack(&self) -> Stack {
        Stack(site::site(self.site).map_or(0, |site| site.stack))
    }

    /// Returns the kernel's number of the allocating thread; 0 if it is not known.
    #[must_use]
    pub fn thread(&self) -> u32 {
        let Some(site) = site::site(self.site) else { return 0 };
        thread::registered_as(site.thread).map_or(0, |thread| thread.system_id)
    }

    /// Returns the scopes of `memreport::scope!` around the allocation, outermost first. The names
    /// are the tracker's: no figure of the program includes them.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        let scope = site::site(self.site).map_or(0, |site| site.scope);
        as_own(|| scope_names(&all_scopes(), scope))
    }

    /// Returns the number of allocations that this one represents: 1 if all are observed.
    ///
    /// Sums of weighted allocations are unbiased estimates of the sums of all allocations.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.rate.weight(self.usable)
    }
}

/// Returns the names from the outermost scope to this one. `all` has the parent and the name of
/// each scope from number 1.
pub(crate) fn scope_names(all: &[(u16, String)], scope: u16) -> Vec<String> {
    let mut names = Vec::new();
    let mut number = usize::from(scope);
    while let Some((parent, name)) = number.checked_sub(1).and_then(|at| all.get(at)) {
        names.push(name.clone());
        // A scope has a smaller number than the scopes inside it.
        number = usize::from(*parent).min(number - 1);
    }
    names.reverse();
    names
}

/// A call stack: the return addresses of the calls that led to an allocation.
///
/// Stacks are interned, and stay valid until the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack(u32);

impl Stack {
    /// Returns whether no stack was taken.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the return addresses, innermost first.
    pub fn frames(self) -> impl Iterator<Item = usize> {
        site::frames(self.0)
    }

    /// Returns the names of the functions, innermost first, with inlined functions.
    ///
    /// A frame without a symbol is `???`. Of functions that the linker or the compiler merged, one
    /// is named: `dmd::census::function_names` (feature `census`) names them all. The first call
    /// reads the program's debug information, which takes time and memory. That memory and the
    /// names are the tracker's: no figure of the program includes them.
    #[must_use]
    pub fn functions(self) -> Vec<String> {
        as_own(|| self.resolve())
    }

    fn resolve(self) -> Vec<String> {
        let mut functions = Vec::new();
        for frame in self.frames() {
            let before = functions.len();
            // A return address is the address after the call.
            let call = std::ptr::without_provenance_mut::<c_void>(frame.saturating_sub(1));
            backtrace::resolve(call, |symbol| {
                functions.extend(symbol.name().map(|name| format!("{name:#}")));
            });
            if functions.len() == before {
                functions.push("???".to_owned());
            }
        }
        functions
    }
}

/// A reading of both clocks, to convert the tracker's times to [`Instant`]s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    instant: Instant,
    monotonic: u64,
}

impl Clock {
    pub(crate) fn now() -> Self {
        Clock { monotonic: sys::monotonic(), instant: Instant::now() }
    }

    /// Converts a time in nanoseconds of the monotonic clock; `None` for 0, which is no time.
    fn instant(self, time: u64) -> Option<Instant> {
        if time == 0 {
            return None;
        }
        match self.monotonic.checked_sub(time) {
            Some(ago) => self.instant.checked_sub(Duration::from_nanos(ago)),
            None => self.instant.checked_add(Duration::from_nanos(time - self.monotonic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::epoch::Epoch;

    #[test]
    fn times_of_the_tracker_become_instants() {
        let instant = Instant::now();
        let clock = Clock { instant, monotonic: 5_000 };
        let nanos = Duration::from_nanos;
        let table = [
            (0, None),
            (1, instant.checked_sub(nanos(4_999))),
            (5_000, Some(instant)),
            (12_000, instant.checked_add(nanos(7_000))),
        ];
        for (time, expected) in table {
            assert_eq!(clock.instant(time), expected, "{time}");
        }
    }

    #[test]
    fn a_scope_comes_after_those_around_it() {
        let all = [(0, "request"), (1, "search"), (0, "save"), (2, "sort"), (9, "broken")];
        let all = all.map(|(parent, name)| (parent, name.to_owned()));
        let table: [(u16, &[&str]); 7] = [
            (0, &[]),
            (1, &["request"]),
            (2, &["request", "search"]),
            (3, &["save"]),
            (4, &["request", "search", "sort"]),
            // A parent that comes later is no reason to go on for ever.
            (5, &["request", "search", "sort", "broken"]),
            (6, &[]),
        ];
        for (scope, expected) in table {
            assert_eq!(scope_names(&all, scope), expected, "{scope}");
        }
    }

    #[test]
    fn a_block_of_an_unknown_site_has_no_stack_thread_or_scope() {
        let block = Block {
            requested: 24,
            usable: 32,
            site: SiteId::UNKNOWN,
            epoch: Epoch::FIRST,
            rate: SamplingRate::EVERY,
            time: 0,
        };
        let allocation = Allocation::of(0x1000, block, Clock::now());
        let sizes = [allocation.address(), allocation.requested(), allocation.usable()];
        assert_eq!(sizes, [0x1000, 24, 32]);
        assert_eq!((allocation.time(), allocation.thread()), (None, 0));
        assert!(allocation.stack().is_empty());
        assert_eq!(allocation.stack().functions(), Vec::<String>::new());
        assert_eq!(allocation.scopes(), Vec::<String>::new());
        assert!((allocation.weight() - 1.0).abs() < f64::EPSILON);
    }
}
