//! What is known of one allocation.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use memreport::__private::all_scopes;

use crate::mem::sys;
use crate::sample::rate::SamplingRate;
use crate::stack::site;
use crate::stack::site::SiteId;
use crate::stack::thread;
use crate::table::packed_block::Block;

/// An allocation: where, when, by whom and how big.
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

    /// The first byte of the block.
    #[must_use]
    pub fn address(&self) -> usize {
        self.address
    }

    /// The bytes that were asked for.
    #[must_use]
    pub fn requested(&self) -> usize {
        self.requested
    }

    /// The bytes that the allocator gave.
    #[must_use]
    pub fn usable(&self) -> usize {
        self.usable
    }

    /// When it was made; `None` of a block from before anybody observed, unless DMD was told `--times=yes`.
    #[must_use]
    pub fn time(&self) -> Option<Instant> {
        self.time
    }

    /// Where it was made; empty if no stack was taken.
    #[must_use]
    pub fn stack(&self) -> Stack {
        Stack(site::site(self.site).map_or(0, |site| site.stack))
    }

    /// The system's number of the thread that made it; 0 is not known.
    #[must_use]
    pub fn thread(&self) -> u32 {
        let Some(site) = site::site(self.site) else { return 0 };
        thread::registered()
            .find(|thread| thread.number == site.thread)
            .map_or(0, |thread| thread.system_id)
    }

    /// The scopes that the thread was in, the outermost first: those of `memreport::scope!`.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        let all = all_scopes();
        let mut names = Vec::new();
        let mut number = site::site(self.site).map_or(0, |site| usize::from(site.scope));
        while let Some((around, name)) = number.checked_sub(1).and_then(|at| all.get(at)) {
            names.push(name.clone());
            // Each is named before those inside it.
            number = usize::from(*around).min(number - 1);
        }
        names.reverse();
        names
    }

    /// How many allocations like it this one stands for: 1 where all are observed. Sums of so weighted ones are unbiased.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.rate.weight(self.usable)
    }
}

/// A stack: the return addresses of the calls that led to an allocation. It is kept for as long as the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack(u32);

impl Stack {
    /// Whether no stack was taken.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The return addresses, the innermost first.
    pub fn frames(self) -> impl Iterator<Item = usize> {
        site::frames(self.0)
    }

    /// The functions, the innermost first, with those that were inlined; `???` of what the program has no symbol for. The first
    /// look-up reads the program's debug information, which takes time and memory.
    #[must_use]
    pub fn functions(self) -> Vec<String> {
        let mut functions = Vec::new();
        for frame in self.frames() {
            let before = functions.len();
            // A return address is behind the call.
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

/// Times of the tracker as those of the standard library, all by one look at both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    instant: Instant,
    monotonic: u64,
}

impl Clock {
    pub(crate) fn now() -> Self {
        Clock { monotonic: sys::monotonic(), instant: Instant::now() }
    }

    /// `None` of 0, which is no time.
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
