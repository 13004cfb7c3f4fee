//! The heap of a program over time: a recording with the functions of its stacks, and its heap at any moment.

use std::time::{Duration, UNIX_EPOCH};

use rustc_hash::FxHashMap;

use super::build::Builder;
use super::{Heap, HeapOptions, Kind, Knows, Row};
use crate::analysis::{Class, NoReports, Totals};
use crate::read::{Dump, ReadError, read_slice};
use crate::recording::{Block, Recording};
use crate::symbols::{Report, Symboliser};

/// A recording whose stacks can be looked up.
///
/// # Examples
///
/// ```
/// use memreport_analysis::heap::HeapOptions;
/// use memreport_analysis::heap::history::History;
/// use memreport_analysis::recording;
///
/// let lines = br#"{"recording":1,"program":"p","pid":7,"startedMs":0,"sampleBytes":null}
/// ["thread",1,70,"main"]
/// ["site",1,1,["1000"],0]
/// ["+",10,1,4096,100,112]
/// ["+",10,1,8192,50,56]
/// ["-",5,4096,1]
/// {"end":true,"events":3,"lost":0}
/// "#;
/// let history = History::new(recording::read(&lines[..])?)?;
/// let heap = history.heap(20, &HeapOptions::default())?;
/// assert_eq!(heap.totals().usable(), 168);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct History {
    recording: Recording,
    /// A block for each site, the first for none.
    sites: Dump,
    /// Which block is which site's.
    places: FxHashMap<u32, usize>,
}

impl History {
    /// Of a recording, with addresses for functions.
    ///
    /// # Errors
    ///
    /// If its stacks cannot be read.
    pub fn new(recording: Recording) -> Result<Self, ReadError> {
        let sites = read_slice(&recording.site_dump())?;
        let places = recording.sites.keys().copied().zip(1..).collect();
        Ok(Self { recording, sites, places })
    }

    /// Looks up functions and lines.
    pub fn symbolicate(&mut self, symboliser: &mut Symboliser) -> Report {
        symboliser.symbolicate(&mut self.sites)
    }

    /// The recording.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// What was remarkable about it, as sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.sites.notes
    }

    /// The blocks that live at this moment, in microseconds since the beginning.
    ///
    /// # Errors
    ///
    /// If blocks of one class are asked for: a recording does not know who reports what.
    pub fn heap(&self, at: u64, options: &HeapOptions) -> Result<Heap, NoReports> {
        Ok(self.layout(options)?.heap(self, at, Knows::Live))
    }

    /// Those, and all that were allocated by then.
    ///
    /// # Errors
    ///
    /// If blocks of one class are asked for: a recording does not know who reports what.
    pub fn heap_and_allocated(&self, at: u64, options: &HeapOptions) -> Result<Heap, NoReports> {
        Ok(self.layout(options)?.heap(self, at, Knows::Both))
    }

    /// What blocks of each site are.
    pub(crate) fn layout(&self, options: &HeapOptions) -> Result<Layout, NoReports> {
        if options.only.is_some() {
            return Err(NoReports);
        }
        let mut builder = Builder::new(&self.sites, options);
        let kind = |block| builder.kind(block, Class::Live);
        let kinds = self.sites.blocks.iter().map(kind).collect();
        let mut heap = Heap::of(&self.sites, builder, options);
        "recording".clone_into(&mut heap.process.mode);
        heap.sample_bytes = self.recording.sample_bytes;
        Ok(Layout { heap, kinds, knows_moment: options.taken.is_some() })
    }

    /// The place of a block's site in a layout.
    pub(crate) fn site(&self, block: &Block) -> usize {
        self.places.get(&block.site).copied().unwrap_or(0)
    }
}

/// A heap without rows, and what blocks of each site are.
pub(crate) struct Layout {
    pub(crate) heap: Heap,
    /// By place of the site; without their size.
    pub(crate) kinds: Vec<Kind>,
    knows_moment: bool,
}

impl Layout {
    /// The heap of a moment.
    pub(crate) fn heap(self, history: &History, at: u64, knows: Knows) -> Heap {
        let rows = self.rows(history, at, knows);
        let mut heap = self.heap;
        heap.rows = rows;
        heap.knows = knows;
        heap.process.uptime_ms = at / 1000;
        if !self.knows_moment {
            let since = Duration::from_millis(history.recording.started_ms);
            heap.taken = UNIX_EPOCH.checked_add(since + Duration::from_micros(at));
        }
        heap.sort();
        heap
    }

    fn rows(&self, history: &History, at: u64, knows: Knows) -> Vec<Row> {
        let mut sums: FxHashMap<(usize, u64), [Sum; 2]> = FxHashMap::default();
        for block in history.recording.blocks.iter().take_while(|block| block.allocated_at <= at) {
            let lives = block.lives_at(at);
            if lives || knows == Knows::Both {
                let [live, allocated] =
                    sums.entry((history.site(block), block.usable)).or_default();
                allocated.add(block);
                if lives {
                    live.add(block);
                }
            }
        }
        // Several sites may be of one kind.
        let mut kinds: FxHashMap<Kind, [Sum; 2]> = FxHashMap::default();
        for ((site, size), [live, allocated]) in sums {
            let kind = Kind { size, ..self.kinds[site].clone() };
            let sum = kinds.entry(kind).or_default();
            sum[0].join(&live);
            sum[1].join(&allocated);
        }
        let row = |(kind, [live, allocated]): (Kind, [Sum; 2])| Row {
            kind,
            live: live.totals(),
            allocated: allocated.totals(),
        };
        kinds.into_iter().map(row).collect()
    }
}

/// Blocks and what they stand for: bytes are rounded block by block, so that every sum of them is the same sum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) blocks: f64,
    requested: f64,
    pub(crate) bytes: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, block: &Block) {
        self.blocks += block.weight;
        self.requested += block.requested_bytes();
        self.bytes += block.bytes();
    }

    fn join(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.requested += other.requested;
        self.bytes += other.bytes;
    }

    #[expect(clippy::cast_possible_truncation, reason = "whole numbers far below 2^53")]
    fn totals(&self) -> Totals {
        let (bytes, req) = (self.bytes as i128, self.requested as i128);
        Totals { blocks: self.blocks.round() as i128, req, slop: bytes - req }
    }
}

#[cfg(test)]
pub(crate) mod tests;
