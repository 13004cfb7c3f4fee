//! The reports that do not fit the heap, grouped by kind, reporter and site.

use std::collections::HashMap;

use super::model::WrongPlace;
use crate::analysis::frames::{Sites, Style, reporter};
use crate::analysis::suggest::ProgramFacts;
use crate::read::Dump;

/// Groups the wrong reports of a dump, by kind and then by claimed bytes.
pub(super) fn wrong_places(
    dump: &Dump,
    sites: &Sites,
    facts: &ProgramFacts<'_>,
    style: &Style<'_>,
) -> Vec<WrongPlace> {
    let reports = dump.extension.iter().flat_map(|extension| &extension.wrong);
    let mut places: Vec<WrongPlace> = Vec::new();
    let mut numbers = HashMap::new();
    for report in reports {
        let site = report.alloc.map(|alloc| sites.of(Some(alloc)));
        let at = *numbers.entry((report.kind, report.reporter, site)).or_insert_with(|| {
            places.push(WrongPlace {
                kind: report.kind,
                reporter: reporter(dump, report.reporter, style),
                num: 0,
                claimed: 0,
                usable: 0,
                addr: report.addr.clone(),
                site: site.map(|site| sites.numbered(site).clone()),
                suggestion: facts.for_wrong(report),
            });
            places.len() - 1
        });
        let place = &mut places[at];
        let plus = |sum: i128, bytes: u64| {
            sum.saturating_add(i128::from(report.num).saturating_mul(bytes.into()))
        };
        place.num = place.num.saturating_add(report.num);
        place.claimed = plus(place.claimed, report.claimed);
        place.usable = plus(place.usable, report.usable.unwrap_or(0));
    }
    places.sort_by_key(|place| (place.kind, std::cmp::Reverse(place.claimed)));
    places
}
