//! What was found at a moment, as JSON for a page: the dark places, heap details, the coverage and the explanation of resident
//! memory, as the commands `dmd`, `heap`, `coverage` and `resident` say.

use super::moment::{Dump, Moment};
use crate::coverage;
use crate::resident;
use crate::show::Failure;
use memreport_analysis::analysis;
use memreport_analysis::analysis::ExplainOptions;
use memreport_analysis::heap;
use memreport_analysis::heap::{Frames, Heap, HeapOptions};
use memreport_analysis::read;
use memreport_analysis::read::DEFAULT_LIMIT;
use memreport_analysis::symbols;
use memreport_analysis::symbols::Symboliser;
use serde_json::{Map, Value, json};

/// How many places of each class a page shows.
const PLACES: usize = 50;

/// What was found, and what is to be said of the search.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) json: Vec<u8>,
    pub(crate) notes: Vec<String>,
}

/// What was found at one of these moments, the others of which are compared with it where they are of the same process. None
/// where there is neither a dump, nor a word on resident memory.
pub(crate) fn find(moments: &[&Moment], index: usize) -> Option<Found> {
    let moment = *moments.get(index)?;
    if moment.dump.is_none() && moment.resident.is_none() {
        return None;
    }
    let mut notes = Vec::new();
    let mut found = Map::new();
    if let Some(dump) = &moment.dump {
        match sheets(moment, dump, &mut notes) {
            Ok(sheets) => found = sheets,
            Err(error) => notes.push(format!("DMD's dump cannot be shown: {error}")),
        }
    }
    if let Some(page) = explain(moments, index) {
        let mut fragment = Vec::new();
        match resident::write_html(&page, &mut fragment) {
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

/// Explains resident memory at one of these moments, and why it grew since the earlier ones of the same process.
fn explain(moments: &[&Moment], index: usize) -> Option<resident::Page> {
    let now = moments[index].resident.as_ref()?;
    let is_earlier = |other: usize, then: &resident::Moment| match (then.time_ms, now.time_ms) {
        (Some(then), Some(now)) => then < now,
        // Who names files names the oldest first.
        _ => other < index,
    };
    let mut course: Vec<(&Moment, &resident::Moment)> = (0..)
        .zip(moments)
        .filter_map(|(other, moment)| Some((other, *moment, moment.resident.as_ref()?)))
        .filter(|(other, _, then)| {
            is_earlier(*other, then) && then.process == now.process && then.is_of_same_process(now)
        })
        .map(|(_, moment, then)| (moment, then))
        .collect();
    course.sort_by_key(|(_, then)| then.time_ms);
    course.push((moments[index], now));
    let last = course.len() - 1;
    let course = (0..).zip(course).map(|(place, (moment, resident))| {
        // Only the two that are compared block by block have their dumps read.
        let mut explained = resident.clone();
        explained.blocks = if place == 0 || place == last { blocks(moment) } else { None };
        explained
    });
    Some(resident::Page::new(course.collect()))
}

/// What the dump of a moment adds to its report; nothing where it cannot be read, which is said with the other sheets.
fn blocks(moment: &Moment) -> Option<resident::Blocks> {
    *moment.blocks.get_or_init(|| resident::blocks(&load(moment.dump.as_ref()?).ok()?))
}

fn load(dump: &Dump) -> Result<read::Dump, Failure> {
    match dump {
        Dump::File(path) => read::read_file(path)
            .map_err(|error| Failure::from(format!("{}: {error}", path.display()))),
        Dump::Bytes(bytes) => Ok(read::read(&bytes[..], DEFAULT_LIMIT)?),
    }
}

/// Reads a dump, and looks up its functions.
fn sheets(
    moment: &Moment,
    dump: &Dump,
    notes: &mut Vec<String>,
) -> Result<Map<String, Value>, Failure> {
    let mut dump = load(dump)?;
    moment.blocks.get_or_init(|| resident::blocks(&dump));
    let mut symboliser = Symboliser::new(symbols::Options::default());
    notes.append(&mut symboliser.symbolicate(&mut dump).notes);
    let mut options = ExplainOptions::default();
    options.top = PLACES;
    options.root = std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned());
    let types = analysis::pointing_types(&dump, &options);
    options.members = symboliser.members(&dump, &types);
    let explained = analysis::explain(&dump, &options);
    let mut sheets = Map::new();
    let mut dark = Vec::new();
    analysis::write_explained_json(&explained, &options, &mut dark)?;
    sheets.insert("dark".into(), serde_json::from_slice(&dark)?);
    let mut of_heap = HeapOptions::default();
    of_heap.frames = Frames::Own;
    sheets.insert("heap".into(), heap::columns(&Heap::new(&dump, &of_heap)?));
    // A dump of another mode does not say who reports what.
    if let Ok(covered) = analysis::coverage(&dump, &options) {
        let mut text = Vec::new();
        coverage::view::write_json(&covered, &mut text)?;
        sheets.insert("coverage".into(), serde_json::from_slice(&text)?);
    }
    Ok(sheets)
}
