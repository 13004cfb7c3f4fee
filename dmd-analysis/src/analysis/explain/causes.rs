//! Places with one cause: those that one change to the code would cover.

use std::collections::HashMap;

use super::model::Place;
use crate::analysis::records::Totals;

/// The places with one cause.
pub(super) struct Cause<'e> {
    /// The largest of them.
    pub(super) first: &'e Place,
    /// The blocks of all.
    pub(super) totals: Totals,
    /// The number of places.
    pub(super) places: usize,
    /// True if they allocate blocks of several types.
    pub(super) has_several_types: bool,
}

/// Groups places by cause, largest first. `places` are sorted by size.
pub(super) fn causes(places: &[Place]) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    let mut numbers = HashMap::new();
    for place in places {
        let at = *numbers.entry(key(place)).or_insert_with(|| {
            let (totals, places) = (Totals::default(), 0);
            causes.push(Cause { first: place, totals, places, has_several_types: false });
            causes.len() - 1
        });
        let cause = &mut causes[at];
        cause.totals = cause.totals.plus(&place.totals);
        cause.places += 1;
        cause.has_several_types |= place.site.block_type != cause.first.site.block_type;
    }
    // The sort is stable: equal causes stay in the order of their largest places.
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.totals.usable()));
    causes
}

/// Returns the cause: the change that is suggested, or else the type and the program's own frame.
fn key(place: &Place) -> (String, Option<&str>) {
    let site = &place.site;
    match &place.suggestion {
        Some(suggestion) => {
            let certain = suggestion.strip_prefix("perhaps ").unwrap_or(suggestion);
            // The number of blocks for which a holder is known is another for each place.
            let change = certain.split_once(" (").map_or(certain, |(change, _)| change);
            (change.to_owned(), None)
        }
        None => {
            (site.block_type.describe(), site.own.as_ref().or(site.frames.first()).map(|s| &**s))
        }
    }
}
