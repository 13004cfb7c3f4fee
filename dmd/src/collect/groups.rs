//! Groups of similar blocks, and the sets of reports of blocks.

use super::age::Age;
use super::holders::HolderId;
use crate::mem::local_interner::{Key, LocalInterner};
use crate::mem::pages::PageList;
use crate::sample::rate::SamplingRate;
use crate::stack::site::SiteId;

/// The properties that all blocks of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupKey {
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) site: SiteId,
    pub(crate) reports: ReportSet,
    /// The holder of unreported blocks.
    pub(crate) holder: HolderId,
    pub(crate) rate: SamplingRate,
    /// The age class, if times are kept.
    pub(crate) age: Age,
    /// True if the blocks were freed, and are only counted.
    pub(crate) is_freed: bool,
}

impl Key for GroupKey {
    fn words(self) -> (u64, u64) {
        let sizes = (self.requested as u64) << 20 ^ self.usable as u64;
        let sizes = sizes ^ u64::from(self.holder.bits()).rotate_right(16);
        let sizes = sizes ^ u64::from(self.age.number()).rotate_right(10);
        (
            sizes,
            u64::from(self.site.number()) << 32
                | u64::from(self.reports.0) << 1
                | u64::from(self.is_freed),
        )
    }
}

/// The number of a group, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupId(u32);

impl GroupId {
    pub(crate) fn from_number(number: u32) -> Self {
        GroupId(number)
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The number of a list of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReportSet(u32);

impl ReportSet {
    /// The set of an unreported block.
    pub(crate) const NONE: ReportSet = ReportSet(0);

    /// Returns the number; 0 is no report.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The number of blocks of each group, and the interned lists of reports.
#[derive(Debug)]
pub(crate) struct Groups {
    keys: LocalInterner<GroupKey>,
    /// The number of blocks, by group.
    counts: PageList<u64>,
    /// Lists of reports: the last report, and the number of the list before it.
    sets: LocalInterner<(u32, u32)>,
    /// The number of blocks that are in no group because memory was short.
    pub(crate) lost: usize,
}

impl Groups {
    pub(super) const fn new() -> Self {
        Groups {
            keys: LocalInterner::new(),
            counts: PageList::new(),
            sets: LocalInterner::new(),
            lost: 0,
        }
    }

    /// Adds `count` blocks to a group, and returns its number; `None` if memory is short, and the
    /// blocks are counted as lost.
    pub(super) fn add(&mut self, key: GroupKey, count: u64) -> Option<GroupId> {
        let number = self.keys.intern(key);
        let slot = number.and_then(|number| {
            if number as usize == self.counts.as_slice().len() {
                self.counts.push(0);
            }
            self.counts.as_mut_slice().get_mut(number as usize)
        });
        match slot {
            Some(slot) => {
                *slot += count;
                number.map(GroupId)
            }
            None => {
                self.lost += usize::try_from(count).unwrap_or(usize::MAX);
                None
            }
        }
    }

    /// Returns the properties of a group of these.
    pub(crate) fn key(&self, group: GroupId) -> Option<&GroupKey> {
        self.keys.keys().get(group.0 as usize)
    }

    /// Returns the set with one more report, or the same set if memory is short.
    pub(super) fn with_report(&mut self, set: ReportSet, report: u32) -> ReportSet {
        self.sets.intern((report, set.0)).map_or(set, |number| ReportSet(number + 1))
    }

    /// Iterates over the groups, with the number of blocks in each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&GroupKey, u64)> {
        self.keys.keys().iter().zip(self.counts.as_slice().iter().copied())
    }

    /// Returns the numbers of the reports of a set, in the order in which they were made.
    pub(crate) fn reports(&self, set: ReportSet) -> impl Iterator<Item = u32> {
        let mut set = set.0;
        let from_last = std::iter::from_fn(move || {
            let (report, before) = *self.sets.keys().get((set as usize).checked_sub(1)?)?;
            set = before;
            Some(report)
        });
        let mut reports: Vec<u32> = from_last.collect();
        reports.reverse();
        reports.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::sys::shortage;

    fn key(requested: usize, reports: ReportSet) -> GroupKey {
        let (site, rate) = (SiteId::UNKNOWN, SamplingRate::EVERY);
        let (holder, age) = (HolderId::default(), Age::default());
        GroupKey { requested, usable: 24, site, reports, holder, rate, age, is_freed: false }
    }

    #[test]
    fn blocks_alike_are_counted_together() {
        let mut groups = Groups::new();
        let freed = GroupKey { is_freed: true, ..key(8, ReportSet::NONE) };
        for (key, count) in [(key(8, ReportSet::NONE), 1), (freed, 5), (key(9, ReportSet::NONE), 1)]
        {
            groups.add(key, count);
            groups.add(key, count);
        }
        let counts: Vec<_> = groups.iter().map(|(key, count)| (key.requested, count)).collect();
        assert_eq!((counts, groups.lost), (vec![(8, 2), (8, 10), (9, 2)], 0));
    }

    #[test]
    fn reports_are_in_the_order_in_which_they_were_made() {
        let mut groups = Groups::new();
        let first = groups.with_report(ReportSet::NONE, 7);
        let both = groups.with_report(first, 3);
        assert_eq!(groups.with_report(first, 3), both);
        let of = |set| groups.reports(set).collect::<Vec<_>>();
        assert_eq!([of(ReportSet::NONE), of(first), of(both)], [vec![], vec![7], vec![7, 3]]);
    }

    #[test]
    fn blocks_that_find_no_memory_are_counted_as_lost() {
        let mut groups = Groups::new();
        shortage::run(|| {
            groups.add(key(8, ReportSet::NONE), 3);
            groups.add(key(9, ReportSet::NONE), 4);
            assert_eq!(groups.with_report(ReportSet::NONE, 7), ReportSet::NONE);
        });
        assert_eq!((groups.lost, groups.iter().count()), (7, 0));
    }
}
