//! Analyses a snapshot for the page: dark matter, coverage and resident memory as one piece of
//! JSON, and the heap's rows, the typed tree and retained sizes as pieces of their own.

use super::snapshot::{Dump, PageSnapshot};
use crate::error::Failure;
use crate::input::dump::DumpReader;
use crate::input::folder::working_directory;
use crate::render::coverage;
use crate::render::owners;
use crate::render::resident::html;
use crate::report::resident::{Blocks, Explanation, ProcessSnapshot};
use memreport_analysis::analysis;
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::census;
use memreport_analysis::census::FileOptions;
use memreport_analysis::heap;
use memreport_analysis::heap::{Frames, Heap, HeapOptions};
use memreport_analysis::ownership::{OwnerRow, OwnerTree, OwnerTreeOptions, RowKind};
use memreport_analysis::read;
use memreport_analysis::read::{DEFAULT_LIMIT, Mode};
use memreport_analysis::retention;
use memreport_analysis::retention::{HandleCount, Retention, TreeOptions};
use serde_json::{Map, Value, json};

/// The number of places of each class that a page shows.
const PLACES: usize = 50;

/// The findings, and notes about the analysis.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) notes: Vec<String>,
}

/// A piece of JSON that the page requests by its name.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) name: &'static str,
    pub(crate) json: Vec<u8>,
}

/// The names of all pieces. The first contains the list of the others.
#[cfg(feature = "serve")]
pub(crate) const PIECES: [&str; 5] = ["findings", "heap", "census", "types", "retained"];

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
    let mut pieces = Vec::new();
    if let Some(dump) = &snapshot.dump {
        match sheets(snapshot, dump, &mut pieces, &mut notes) {
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
    found.insert("pieces".into(), pieces.iter().map(|piece| piece.name).collect());
    pieces.insert(0, Piece::new("findings", &Value::Object(found)));
    Some(Found { pieces, notes })
}

impl Piece {
    fn new(name: &'static str, value: &Value) -> Self {
        Piece { name, json: value.to_string().into_bytes() }
    }
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
    *snapshot.blocks.get_or_init(|| {
        let dump = match snapshot.dump.as_ref()? {
            Dump::File(path) => DumpReader::load_amounts(path).ok()?,
            Dump::Bytes(bytes) => read::read_amounts(&bytes[..], DEFAULT_LIMIT).ok()?,
        };
        Blocks::of_dump(&dump)
    })
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
    pieces: &mut Vec<Piece>,
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
    pieces.push(Piece::new("heap", &heap::columns(&Heap::new(&dump, &of_heap)?)));
    let mut of_census = FileOptions::default();
    of_census.root = working_directory();
    pieces.push(Piece::new("census", &census::columns(&dump, &of_census)));
    if dump.invocation.mode == Mode::Scan {
        notes.extend(owners(&dump, &mut reader, pieces, &mut sheets).err());
    }
    if let Some(ours) = &dump.extension {
        sheets.insert("mode".into(), json!(ours.mode));
    }
    // A dump of another mode contains no reports.
    if let Ok(covered) = analysis::coverage_of(&dump, &explained, &options) {
        let mut text = Vec::new();
        coverage::json::write(&covered, &mut text)?;
        sheets.insert("coverage".into(), serde_json::from_slice(&text)?);
    }
    Ok(sheets)
}

/// Adds the typed tree and the retained sizes of a scan, and the sum of leaked blocks. Returns the
/// reason why a scan has none.
fn owners(
    dump: &read::Dump,
    reader: &mut DumpReader,
    pieces: &mut Vec<Piece>,
    sheets: &mut Map<String, Value>,
) -> Result<(), String> {
    let missing = |error: &dyn std::fmt::Display| format!("the scan cannot be followed: {error}");
    let mut options = OwnerTreeOptions::default();
    options.explain.root = working_directory();
    let types = reader.types(dump);
    reader.free_modules();
    let tree = OwnerTree::new(dump, &types, &options).map_err(|error| missing(&error))?;
    drop(types);
    let shown =
        owners::Shown { depth: 0, min: 0.0, filter: "", columns: usize::MAX, unreported: false };
    let mut text = Vec::new();
    owners::json::write(&tree, &shown, &mut text).map_err(|error| missing(&error))?;
    pieces.push(Piece { name: "types", json: text });
    let retention = Retention::new(dump, &options.explain).map_err(|error| missing(&error))?;
    let mut of_tree = TreeOptions::default();
    (of_tree.top, of_tree.min_percent, of_tree.depth) = (CHILDREN, 0.1, LEVELS);
    let mut text = Vec::new();
    let cycles = retention.cycles();
    retention.check_words().map_err(|error| missing(&error))?;
    let of_cycles = cycles.iter().filter(|cycle| cycle.handles == HandleCount::Leaked);
    // Without all roots, leaked blocks are among those of unknown holders.
    let leaked =
        sum_of(&tree.rows, RowKind::Leaked).max(of_cycles.map(|cycle| cycle.retained).sum());
    let unknown = sum_of(&tree.rows, RowKind::Unknown);
    sheets.insert("leaked".into(), json!(leaked));
    sheets.insert("unknown".into(), json!(unknown.saturating_sub(leaked)));
    let nodes = retention.tree(&of_tree);
    retention::write_tree_json(&retention, &nodes, &cycles, &mut text)
        .map_err(|error| missing(&error))?;
    pieces.push(Piece { name: "retained", json: text });
    Ok(())
}

/// The largest numbers of children and of levels of the tree of retained sizes.
const CHILDREN: usize = 100;
const LEVELS: usize = 40;

/// Returns the bytes of the rows of this kind and all below them.
fn sum_of(rows: &[OwnerRow], kind: RowKind) -> u64 {
    let of_row = |row: &OwnerRow| match row.kind == kind {
        true => row.bytes,
        false => sum_of(&row.children, kind),
    };
    rows.iter().map(of_row).fold(0, u64::saturating_add)
}
