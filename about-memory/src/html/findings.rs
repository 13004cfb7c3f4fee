//! What DMD found at a moment, as JSON for a page: the dark places and the coverage, as the commands `dmd` and `coverage` say.

use super::moment::Dump;
use crate::coverage;
use crate::show::Failure;
use dmd::analysis::{self, ExplainOptions};
use dmd::dump::read::{self, DEFAULT_LIMIT};
use dmd::symbols::{self, Symboliser};
use serde_json::{Map, Value, json};

/// How many places of each class a page shows.
const PLACES: usize = 50;

/// What was found, and what is to be said of the search.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) json: Vec<u8>,
    pub(crate) notes: Vec<String>,
}

/// Reads a dump, and looks up its functions. A dump that cannot be read is a note.
pub(super) fn find(dump: &Dump) -> Found {
    let mut notes = Vec::new();
    let mut sheets = match sheets(dump, &mut notes) {
        Ok(sheets) => sheets,
        Err(error) => {
            notes.push(format!("DMD's dump cannot be shown: {error}"));
            Map::new()
        }
    };
    sheets.insert("notes".into(), json!(notes));
    Found { json: Value::Object(sheets).to_string().into_bytes(), notes }
}

fn sheets(dump: &Dump, notes: &mut Vec<String>) -> Result<Map<String, Value>, Failure> {
    let mut dump = match dump {
        Dump::File(path) => read::read_file(path)
            .map_err(|error| Failure::from(format!("{}: {error}", path.display())))?,
        Dump::Bytes(bytes) => read::read(&bytes[..], DEFAULT_LIMIT)?,
    };
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
    // A dump of another mode does not say who reports what.
    if let Ok(covered) = analysis::coverage(&dump, &options) {
        let mut text = Vec::new();
        coverage::view::write_json(&covered, &mut text)?;
        sheets.insert("coverage".into(), serde_json::from_slice(&text)?);
    }
    Ok(sheets)
}
