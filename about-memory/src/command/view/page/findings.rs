//! Analyses a snapshot for the page: dark matter, heap tree, coverage and resident memory, as JSON.

use super::snapshot::{Dump, PageSnapshot};
use crate::error::Failure;
use crate::input::dump::DumpReader;
use crate::input::folder::working_directory;
use crate::render::coverage;
use crate::render::resident::html;
use crate::report::resident::{Blocks, Explanation, ProcessSnapshot};
use memreport_analysis::analysis;
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::heap;
use memreport_analysis::heap::{Frames, Heap, HeapOptions};
use memreport_analysis::read;
use memreport_analysis::read::DEFAULT_LIMIT;
use serde_json::{Map, Value, json};

/// The number of places of each class that a page shows.
const PLACES: usize = 50;

/// The findings, and notes about the analysis.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) json: Vec<u8>,
    pub(crate) notes: Vec<String>,
}

/// Analyses one of these snapshots. Compares it with the earlier ones of the same process.
///
/// Returns `None` if there is neither a dump nor a figure of resident memory.
pub(crate) fn find(snapshots: &[&PageSnapshot], index: usize) -> Option<Found> {
    let snapshot = *snapshots.get(index)?;
    if snapshot.dump.is_none() && snapshot.resident.is_none() {
        return None;
    }
    let mut notes = Vec::new();
    let mut found = Map::new();
    if let Some(dump) = &snapshot.dump {
        match sheets(snapshot, dump, &mut notes) {
            Ok(sheets) => found = sheets,
            Err(error) => notes.push(format!("DMD's dump cannot be shown: {error}")),
        }
    }
    if let Some(page) = explain(snapshots, index) {
        let mut fragment = Vec::new();
        match html::write(&page, &mut fragment) {
            Ok(()) => {
                let fragment = String::from_utf8_lossy(&fragment);
                found.insert("resident".into(), json!(fragment));
            }
            Err(error) => notes.push(format!("resident memory cannot be explained: {error}")),
        }
    }
    found.insert("notes".into(), json!(notes));
    Some(Found { json: Value::Object(found).to_string().into_bytes(), notes })
}

/// Explains resident memory at one of these snapshots, and its growth since the earlier ones of the
/// same process.
fn explain(snapshots: &[&PageSnapshot], index: usize) -> Option<Explanation> {
    let now = snapshots[index].resident.as_ref()?;
    let is_earlier = |other: usize, then: &ProcessSnapshot| match (then.time_ms, now.time_ms) {
        (Some(then), Some(now)) => then < now,
        // Without times, the files are in order, the oldest first.
        _ => other < index,
    };
    let mut course: Vec<(&PageSnapshot, &ProcessSnapshot)> = (0..)
        .zip(snapshots)
        .filter_map(|(other, snapshot)| Some((other, *snapshot, snapshot.resident.as_ref()?)))
        .filter(|(other, _, then)| {
            is_earlier(*other, then) && then.process == now.process && then.is_of_same_process(now)
        })
        .map(|(_, snapshot, then)| (snapshot, then))
        .collect();
    course.sort_by_key(|(_, then)| then.time_ms);
    course.push((snapshots[index], now));
    let last = course.len() - 1;
    let course = (0..).zip(course).map(|(place, (snapshot, resident))| {
        // Read the dumps of those two alone that are compared block by block.
        let mut explained = resident.clone();
        explained.blocks = if place == 0 || place == last { blocks(snapshot) } else { None };
        explained
    });
    Some(Explanation::new(course.collect()))
}

/// Returns the sums of a snapshot's blocks; `None` if the dump cannot be read.
fn blocks(snapshot: &PageSnapshot) -> Option<Blocks> {
    *snapshot.blocks.get_or_init(|| Blocks::of_dump(&load(snapshot.dump.as_ref()?).ok()?))
}

fn load(dump: &Dump) -> Result<read::Dump, Failure> {
    match dump {
        Dump::File(path) => Ok(DumpReader::load(path)?),
        Dump::Bytes(bytes) => Ok(read::read(&bytes[..], DEFAULT_LIMIT)?),
    }
}

/// Reads and symbolicates a dump, and analyses it.
fn sheets(
    snapshot: &PageSnapshot,
    dump: &Dump,
    notes: &mut Vec<String>,
) -> Result<Map<String, Value>, Failure> {
    let mut dump = load(dump)?;
    snapshot.blocks.get_or_init(|| Blocks::of_dump(&dump));
    let mut reader = DumpReader::default();
    notes.append(&mut reader.symbolicate(&mut dump));
    let mut options = ExplainOptions::default();
    options.top = PLACES;
    options.root = working_directory();
    let types = analysis::pointing_types(&dump, &options);
    options.members = reader.members(&dump, &types);
    let explained = analysis::explain(&dump, &options);
    let mut sheets = Map::new();
    let mut dark = Vec::new();
    analysis::write_explained_json(&explained, &options, &mut dark)?;
    sheets.insert("dark".into(), serde_json::from_slice(&dark)?);
    let mut of_heap = HeapOptions::default();
    of_heap.frames = Frames::Own;
    sheets.insert("heap".into(), heap::columns(&Heap::new(&dump, &of_heap)?));
    // A dump of another mode contains no reports.
    if let Ok(covered) = analysis::coverage(&dump, &options) {
        let mut text = Vec::new();
        coverage::json::write(&covered, &mut text)?;
        sheets.insert("coverage".into(), serde_json::from_slice(&text)?);
    }
    Ok(sheets)
}
