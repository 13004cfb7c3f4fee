//! The heap of a program over time: a symbolicated recording, and its heap at any moment.

use std::time::{Duration, UNIX_EPOCH};
use std::{error, fmt};

use rustc_hash::FxHashMap;

use super::HeapOptions;
use super::build::Builder;
use super::model::{Amounts, Heap, Kind, Row};
use crate::analysis::{Class, NoReports, Totals};
use crate::read::{Dump, ReadError};
use crate::recording::{Block, Recording, RecordingError};
use crate::symbols::{Report, Symboliser};

/// A recording whose stacks can be symbolicated.
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
    /// A block for each site. The first stands for no site.
    sites: Dump,
    /// The place of each site's block in `sites`.
    places: FxHashMap<u32, usize>,
}

impl History {
    /// Takes a recording. Its frames are addresses until it is symbolicated.
    ///
    /// # Errors
    ///
    /// Returns an error if its stacks cannot be read.
    pub fn new(recording: Recording) -> Result<Self, ReadError> {
        let sites = recording.site_dump()?;
        let places = recording.sites.keys().copied().zip(1..).collect();
        Ok(Self { recording, sites, places })
    }

    /// Looks up the functions and lines of all frames.
    pub fn symbolicate(&mut self, symboliser: &mut Symboliser) -> Report {
        symboliser.symbolicate(&mut self.sites)
    }

    /// Returns the recording.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns sentences about facts that could not be looked up.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.sites.notes
    }

    /// Returns the heap of the blocks that are live at a moment, in microseconds since the
    /// beginning.
    ///
    /// # Errors
    ///
    /// Returns an error if the options keep one class of blocks, or if the file cannot be read.
    pub fn heap(&self, at: u64, options: &HeapOptions) -> Result<Heap, HistoryError> {
        Ok(self.heaps_of(&[at], options, Amounts::Live)?.remove(0))
    }

    /// Returns the heap of these blocks and of all that were allocated up to that moment.
    ///
    /// # Errors
    ///
    /// The same as those of [`heap`](Self::heap).
    pub fn heap_and_allocated(&self, at: u64, options: &HeapOptions) -> Result<Heap, HistoryError> {
        Ok(self.heaps_of(&[at], options, Amounts::Both)?.remove(0))
    }

    /// Returns the heap of each of these moments, which are in the order of time. The file is read
    /// once for all.
    ///
    /// # Errors
    ///
    /// The same as those of [`heap`](Self::heap).
    pub fn heaps(&self, at: &[u64], options: &HeapOptions) -> Result<Vec<Heap>, HistoryError> {
        self.heaps_of(at, options, Amounts::Live)
    }

    fn heaps_of(
        &self,
        at: &[u64],
        options: &HeapOptions,
        amounts: Amounts,
    ) -> Result<Vec<Heap>, HistoryError> {
        let mut layouts = Vec::with_capacity(at.len());
        for _ in at {
            layouts.push(self.layout(options)?);
        }
        let moments = self.moments(at, amounts)?;
        let heap = |(mut layout, moment): (Layout, MomentSums)| {
            layout.set_moment(self, moment);
            layout.heap
        };
        Ok(layouts.into_iter().zip(moments).map(heap).collect())
    }

    /// Returns the same heaps as [`heaps`](Self::heaps), of which one at a time is in memory.
    pub(crate) fn heaps_in_turn(
        &self,
        at: &[u64],
        options: &HeapOptions,
    ) -> Result<HeapsInTurn<'_>, HistoryError> {
        let layout = self.layout(options)?;
        let moments = self.moments(at, Amounts::Live)?.into_iter();
        Ok(HeapsInTurn { history: self, layout, moments })
    }

    fn moments(&self, at: &[u64], amounts: Amounts) -> Result<Vec<MomentSums>, RecordingError> {
        let sums = at.iter().zip(self.sums(at, amounts)?);
        Ok(sums.map(|(at, sums)| MomentSums { at: *at, amounts, sums }).collect())
    }

    /// Adds up the blocks of each site and size at each of these moments.
    fn sums(&self, at: &[u64], amounts: Amounts) -> Result<Vec<SumsBySite>, RecordingError> {
        let mut all = vec![SumsBySite::default(); at.len()];
        self.recording.each_block(|block| {
            let key = SizedSite { site: self.site(block), size: block.usable };
            let first = at.partition_point(|at| *at < block.allocated_at);
            for (at, sums) in at.iter().zip(&mut all).skip(first) {
                let lives = self.recording.lives_at(block, *at);
                if lives || amounts == Amounts::Both {
                    let sum = sums.entry(key).or_default();
                    sum.allocated.add(block);
                    if lives {
                        sum.live.add(block);
                    }
                } else if block.freed.is_some_and(|freed| freed.time < *at) {
                    break;
                }
            }
        })?;
        Ok(all)
    }

    /// Returns the kinds of the blocks of each site.
    pub(crate) fn layout(&self, options: &HeapOptions) -> Result<Layout, NoReports> {
        if options.only.is_some() {
            return Err(NoReports);
        }
        let mut builder = Builder::new(&self.sites, options);
        let kind = |block: crate::read::Block<'_>| builder.kind(&block, Class::Live);
        let kinds = self.sites.blocks.iter().map(kind).collect();
        let mut heap = Heap::built(&self.sites, builder, options);
        "recording".clone_into(&mut heap.process.mode);
        heap.sample_bytes = self.recording.sample_bytes;
        Ok(Layout { heap, kinds, has_time: options.taken.is_some() })
    }

    /// Returns the place of a block's site in a layout.
    pub(crate) fn site(&self, block: &Block) -> usize {
        self.places.get(&block.site).copied().unwrap_or(0)
    }

    /// Returns the place of the site that freed a block; `None` if it is not known.
    pub(crate) fn free_site(&self, block: &Block) -> Option<usize> {
        self.places.get(&block.freed?.site).copied()
    }
}

/// The error for the heap of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryError {
    /// The options keep one class of blocks, but a recording contains no reports.
    NoReports(NoReports),
    /// The blocks cannot be read from the file.
    Recording(RecordingError),
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReports(error) => write!(f, "{error}"),
            Self::Recording(error) => write!(f, "{error}"),
        }
    }
}

impl error::Error for HistoryError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::NoReports(error) => error.source(),
            Self::Recording(error) => error.source(),
        }
    }
}

impl From<NoReports> for HistoryError {
    fn from(error: NoReports) -> Self {
        Self::NoReports(error)
    }
}

impl From<RecordingError> for HistoryError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}

/// A heap without rows, and the kinds of the blocks of each site.
pub(crate) struct Layout {
    pub(crate) heap: Heap,
    /// One for each place of a site, without the size.
    pub(crate) kinds: Vec<Kind>,
    /// True if the options contain the time of the heap.
    has_time: bool,
}

/// The sums of the blocks of a moment, in microseconds.
struct MomentSums {
    at: u64,
    amounts: Amounts,
    sums: SumsBySite,
}

/// The heaps of several moments. They differ in their rows alone, so that they share the rest.
pub(crate) struct HeapsInTurn<'h> {
    history: &'h History,
    layout: Layout,
    moments: std::vec::IntoIter<MomentSums>,
}

impl HeapsInTurn<'_> {
    /// Returns the heap of the next moment, which replaces the one before.
    pub(crate) fn advance(&mut self) -> Option<&Heap> {
        self.layout.set_moment(self.history, self.moments.next()?);
        Some(&self.layout.heap)
    }
}

impl Layout {
    /// Sets the heap to a moment.
    fn set_moment(&mut self, history: &History, moment: MomentSums) {
        let MomentSums { at, amounts, sums } = moment;
        let rows = self.rows(sums);
        let heap = &mut self.heap;
        heap.rows = rows;
        heap.amounts = amounts;
        heap.process.uptime_ms = at / 1000;
        if !self.has_time {
            let since = Duration::from_millis(history.recording.started_ms);
            heap.taken = UNIX_EPOCH.checked_add(since + Duration::from_micros(at));
        }
        heap.sort();
    }

    fn rows(&self, sums: SumsBySite) -> Vec<Row> {
        // Several sites may have blocks of one kind.
        let mut kinds: FxHashMap<Kind, LiveAndAllocated> = FxHashMap::default();
        for (SizedSite { site, size }, of_site) in sums {
            let kind = Kind { size, ..self.kinds[site].clone() };
            let sum = kinds.entry(kind).or_default();
            sum.live.join(&of_site.live);
            sum.allocated.join(&of_site.allocated);
        }
        let row = |(kind, sum): (Kind, LiveAndAllocated)| Row {
            kind,
            live: sum.live.totals(),
            allocated: sum.allocated.totals(),
        };
        kinds.into_iter().map(row).collect()
    }
}

type SumsBySite = FxHashMap<SizedSite, LiveAndAllocated>;

/// A site and the size of its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct SizedSite {
    site: usize,
    size: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct LiveAndAllocated {
    live: Sum,
    allocated: Sum,
}

/// A sum of blocks. Bytes are rounded block by block, so that every order of adding gives the same
/// sum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) blocks: f64,
    requested: f64,
    pub(crate) bytes: f64,
}

/// The largest sum that is shown as it is: 2^80.
const MOST: f64 = (1_u128 << 80) as f64;

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
        // Recordings from elsewhere have any weights. Sums of these must not overflow.
        let whole = |sum: f64| sum.round().clamp(-MOST, MOST) as i128;
        let (bytes, req) = (whole(self.bytes), whole(self.requested));
        Totals { blocks: whole(self.blocks), req, slop: bytes - req }
    }
}

#[cfg(test)]
pub(crate) mod tests;
