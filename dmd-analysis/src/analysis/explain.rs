//! Explains a dump: where its unreported blocks come from, which blocks are reported twice, which
//! reports are wrong.

mod model;
mod causes;
mod wrong;
mod summary;
mod records_text;
mod words;

pub use model::{ClassPlaces, Explained, Place, WrongPlace};
pub use records_text::{write_explained, write_places};
pub use summary::write_summary;

pub(crate) use words::kind_name;

use std::collections::{BTreeSet, HashMap};

use super::frames::{BlockType, Sites, Style, reporter};
use super::options::ExplainOptions;
use super::records::{Class, Totals, class, mode};
use super::suggest::{BlockHolder, ProgramFacts, UnreportedCauses};
use crate::read::{Block, Dump, Mode, Sum, TraceId};
use crate::symbols::Members;
use wrong::wrong_places;

/// Groups the blocks of a dump by class, site and reporters, and finds suggestions for them.
#[must_use]
pub fn explain(dump: &Dump, options: &ExplainOptions) -> Explained {
    let style = Style { root: options.root.as_deref(), width: options.width };
    let sites = Sites::new(dump, options.max_frames, &style);
    let facts = ProgramFacts::new(dump, &style, &options.members);
    let by_place = by_place(dump, &sites, &facts);
    let heap = by_place.values().fold(Totals::default(), |sum, blocks| sum.plus(&blocks.totals));
    // Sorted, so that the order does not depend on the hash table.
    let mut by_place: Vec<_> = by_place.into_iter().collect();
    by_place.sort_unstable_by_key(|(key, _)| *key);
    let mut by_class: Vec<ClassPlaces> = Vec::new();
    for ((class, site, reports), PlaceBlocks { totals, causes }) in by_place {
        let reporters = reports.iter().map(|&trace| reporter(dump, Some(trace), &style)).collect();
        let site = sites.numbered(site).clone();
        let suggestion = match class {
            Class::Unreported => {
                let type_of = |alloc| sites.get(alloc).block_type.clone();
                facts.for_unreported(&site, totals, &causes, type_of)
            }
            Class::TwiceReported => facts.for_double(reports, &site.block_type),
            _ => None,
        };
        let place = Place { site, reporters, totals, suggestion };
        match by_class.iter_mut().find(|of| of.class == class) {
            Some(of) => of.places.push(place),
            None => by_class.push(ClassPlaces { class, places: vec![place] }),
        }
    }
    for of in &mut by_class {
        // Stable: places that differ in nothing here keep the order of their sites.
        of.places.sort_by_cached_key(|place| {
            let size = (place.totals.usable(), place.totals.blocks);
            (
                std::cmp::Reverse(size),
                place.site.frames.clone(),
                place.site.block_type.clone(),
                place.reporters.clone(),
            )
        });
    }
    let ours = dump.extension.as_ref();
    let untracked = ours.map_or(Sum::default(), |ours| ours.untracked);
    Explained {
        mode: mode(dump),
        sampled: ours.and_then(|ours| ours.sampled),
        untracked,
        reported_untracked: ours.map_or(0, |ours| ours.reported_untracked),
        unmeasured: ours.map_or(0, |ours| ours.unmeasured),
        heap: heap.plus(&untracked.into()),
        places: by_class,
        wrong: wrong_places(dump, &sites, &facts, &style),
    }
}

/// Returns the types whose reported values point at unreported blocks, in a scan.
///
/// If [`ExplainOptions::members`] has the offsets of their fields, suggestions name the fields.
#[must_use]
pub fn pointing_types(dump: &Dump, options: &ExplainOptions) -> Vec<String> {
    let mode = mode(dump);
    if dump.invocation.mode != Mode::Scan || mode != Mode::DarkMatter {
        return Vec::new();
    }
    let style = Style::default();
    let sites = Sites::new(dump, options.max_frames, &style);
    let members = Members::new();
    let facts = ProgramFacts::new(dump, &style, &members);
    let types = facts.pointing(dump).filter_map(|(_, pointing)| {
        let BlockType::Known(name) = &sites.get(pointing.alloc).block_type else { return None };
        facts.own_type(name).map(str::to_owned)
    });
    let types: BTreeSet<String> = types.collect();
    types.into_iter().collect()
}

/// A class, the number of a site, and the reports of its blocks.
type PlaceKey<'d> = (Class, usize, &'d [TraceId]);

/// Adds up the blocks of each place.
fn by_place<'d>(
    dump: &'d Dump,
    sites: &Sites,
    facts: &ProgramFacts<'d>,
) -> HashMap<PlaceKey<'d>, PlaceBlocks<'d>> {
    let mode = mode(dump);
    let mut by_place: HashMap<PlaceKey<'d>, PlaceBlocks<'d>> = HashMap::new();
    for block in dump.blocks.added_up() {
        let reports = dump.reports(&block);
        let class = class(mode, reports);
        let place = (class, sites.of(block.kind.alloc), reports.unwrap_or(&[]));
        let blocks = by_place.entry(place).or_default();
        blocks.totals.add_weighted(&block);
        if class == Class::Unreported {
            add(&mut blocks.causes.held, BlockHolder::of(&block), &block);
        }
    }
    for (index, pointing) in facts.pointing(dump) {
        let block = dump.blocks.at(index);
        let place = (Class::Unreported, sites.of(block.kind.alloc), &[][..]);
        if let Some(blocks) = by_place.get_mut(&place) {
            add(&mut blocks.causes.pointed, Some(pointing), &block);
        }
    }
    by_place
}

/// The blocks of one place.
#[derive(Default)]
struct PlaceBlocks<'d> {
    totals: Totals,
    causes: UnreportedCauses<'d>,
}

/// Adds a block to the sum of a key.
fn add<K: PartialEq>(sums: &mut Vec<(K, Totals)>, key: Option<K>, block: &Block<'_>) {
    // More keys than this do not change the suggestion, which is by the largest.
    const MOST: usize = 64;
    let Some(key) = key else { return };
    let is_full = sums.len() == MOST;
    match sums.iter_mut().find(|(other, _)| *other == key) {
        Some((_, totals)) => totals.add_weighted(block),
        None if !is_full => {
            let mut totals = Totals::default();
            totals.add_weighted(block);
            sums.push((key, totals));
        }
        None => {}
    }
}
