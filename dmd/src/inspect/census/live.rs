//! Takes a census of the running program: collects, then counts the blocks without a file.

use memreport::__private::as_own;
use memreport::Collector;
use memreport_analysis::census::engine::{Counting, Item};
use memreport_analysis::census::{Breakdown, Census};

use super::source::{BlockProperties, LiveSource};
use crate::collect::Dump;
use crate::collect::groups::GroupKey;
use crate::collect::holders::enabled::without_holders;

/// Counts the live blocks of this program by a breakdown; `None` while DMD is asleep.
///
/// Takes a collection of its own; the program continues to run meanwhile. Frames are addresses such
/// as `???[/usr/bin/program +0x12]`, with the allocator's frames first, because symbolication takes
/// seconds and memory. So files and crates are unknown, and types come from the reporters.
/// [`take_symbolicated`](super::take_symbolicated) symbolicates.
///
/// # Panics
///
/// If a reporter calls it, because collections do not nest.
///
/// # Examples
///
/// ```
/// use dmd::census::{Axis, Split};
///
/// dmd::global_allocator!();
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// dmd::start("--mode=live".parse()?)?;
/// let words: Vec<String> = (0..1000).map(|number| format!("word {number}")).collect();
/// let census = dmd::take_census(&Split::by(Axis::Thread).into()).ok_or("DMD sleeps")?;
/// assert!(census.root().amount.count > 1000);
/// # drop(words);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn take_census(breakdown: &Breakdown) -> Option<Census> {
    let collector = Collector::default().quick().moment("requested for a census");
    // No breakdown shows the holders of unreported blocks.
    let snapshot = without_holders(|| collector.snapshot());
    Dump::of(&snapshot).map(|dump| dump.census(breakdown))
}

impl Dump {
    /// Counts the live blocks of this collection by a breakdown.
    ///
    /// The census itself is memory of the tracker, so it is in no other collection.
    ///
    /// ```
    /// # use dmd::census::{Axis, Split};
    /// # dmd::global_allocator!();
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// dmd::start("--mode=live".parse()?)?;
    /// let words: Vec<String> = (0..1000).map(|number| format!("word {number}")).collect();
    /// let snapshot = memreport::snapshot();
    /// let dump = dmd::Dump::of(&snapshot).ok_or("DMD is asleep")?;
    /// assert!(dump.census(&Split::by(Axis::Thread).into()).root().amount.count > 1000);
    /// # drop(words);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn census(&self, breakdown: &Breakdown) -> Census {
        as_own(|| {
            let contents = &self.contents;
            let mut source = LiveSource::new(self);
            let mut counting = Counting::new(breakdown);
            let mut count = |address: Option<u64>, group: &GroupKey, count: u64| {
                let GroupKey { requested, usable, site, rate, reports, age, .. } = *group;
                let properties = BlockProperties { requested, usable, site, rate, reports, age };
                let item = Item { address, ..source.item(properties, count) };
                counting.add(&item, &mut source);
            };
            match &contents.scanned {
                Some(scanned) => {
                    for block in scanned.blocks.iter() {
                        let group = contents.groups.key(block.group);
                        group
                            .into_iter()
                            .for_each(|group| count(Some(block.address as u64), group, 1));
                    }
                }
                None => {
                    for (group, blocks) in contents.groups.iter().filter(|(key, _)| !key.is_freed) {
                        count(None, group, blocks);
                    }
                }
            }
            let is_sampled = contents.sampled.is_some();
            let mut census = counting.into_census(is_sampled, contents.notes.clone());
            let untracked = self.untracked();
            census.add_untracked(untracked.blocks as u64, untracked.bytes as u64);
            census
        })
    }
}
