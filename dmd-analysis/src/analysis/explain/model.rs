//! A dump explained, as values: places by class, and wrong reports.

use crate::analysis::frames::Site;
use crate::analysis::records::{Class, Totals};
use crate::read::{Mode, Sampled, Sum, WrongKind};

/// A place: the blocks of one class from one allocation site, with the same reporters.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Place {
    /// The site that allocated them.
    pub site: Site,
    /// Their reporters, first report first.
    pub reporters: Vec<String>,
    /// Their number and bytes.
    pub totals: Totals,
    /// The change to the code that would cover them, in one line, if there is a suggestion.
    pub suggestion: Option<String>,
}

/// The reports of one kind and one reporter that do not fit the heap.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WrongPlace {
    /// The kind of error.
    pub kind: WrongKind,
    /// Their reporter.
    pub reporter: String,
    /// Their number.
    pub num: u64,
    /// The bytes they claimed.
    pub claimed: i128,
    /// The usable bytes of the blocks that they claim.
    pub usable: i128,
    /// The first claimed address, in hexadecimal.
    pub addr: String,
    /// The site that allocated the blocks, if the dump contains it.
    pub site: Option<Site>,
    /// The change to the code that would cover them, in one line, if there is a suggestion.
    pub suggestion: Option<String>,
}

/// The places of one class.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClassPlaces {
    /// The class of all their blocks.
    pub class: Class,
    /// The places, largest first.
    pub places: Vec<Place>,
}

/// A dump explained: unreported places, places reported twice, and wrong reports, each largest
/// first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Explained {
    /// The mode by which blocks are classified.
    pub mode: Mode,
    /// The estimates of a profile. If present, the figures below are estimates as well.
    pub sampled: Option<Sampled>,
    /// The live blocks from before tracking began or while it was off. No class contains them.
    pub untracked: Sum,
    /// The bytes of untracked blocks that are reported.
    pub reported_untracked: u64,
    /// The bytes that were reported as heap without being measured block by block.
    pub unmeasured: i64,
    /// All blocks: the sum of the classes and of untracked blocks.
    pub heap: Totals,
    /// The places of each class that has any.
    pub places: Vec<ClassPlaces>,
    /// The reports that do not fit the heap.
    pub wrong: Vec<WrongPlace>,
}

impl Explained {
    /// Returns the places of a class, largest first.
    #[must_use]
    pub fn places(&self, class: Class) -> &[Place] {
        self.places.iter().find(|of| of.class == class).map_or(&[], |of| &of.places)
    }

    /// Returns the sum of all blocks of a class.
    #[must_use]
    pub fn totals(&self, class: Class) -> Totals {
        self.places(class).iter().fold(Totals::default(), |sum, place| sum.plus(&place.totals))
    }

    /// Returns the value of `heap-unclassified` that agrees with this dump, in bytes.
    ///
    /// That is: unreported bytes of tracked and untracked blocks, plus bytes that partial reports
    /// leave out, minus bytes that are counted more than once, are not on the heap, or come from a
    /// formula. The reports must be of the same collection.
    #[must_use]
    pub fn heap_unclassified(&self) -> i128 {
        let unreported = self.totals(Class::Unreported).usable();
        let again = |place: &Place| {
            let reports = i128::try_from(place.reporters.len()).unwrap_or(i128::MAX);
            place.totals.usable().saturating_mul(reports - 1)
        };
        let doubled = self.places(Class::TwiceReported).iter().map(again);
        let doubled = doubled.fold(0, i128::saturating_add);
        let wrong = self.wrong.iter().map(WrongPlace::missing).fold(0, i128::saturating_add);
        let untracked = i128::from(self.untracked.bytes) - i128::from(self.reported_untracked);
        let rest = untracked - i128::from(self.unmeasured);
        unreported.saturating_sub(doubled).saturating_add(wrong).saturating_add(rest)
    }
}

impl WrongPlace {
    /// Returns the bytes of the heap that these reports leave out, negative if they claim too many.
    #[must_use]
    pub fn missing(&self) -> i128 {
        if self.kind == WrongKind::Partial { self.usable - self.claimed } else { -self.claimed }
    }
}
