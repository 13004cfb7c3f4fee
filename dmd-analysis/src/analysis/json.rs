//! Groups and explained dumps as JSON, for programs.

use std::io::{self, Write};

use serde::Serialize;

use super::by::Group;
use super::explain::{ClassPlaces, Explained, Place, WrongPlace, kind_name};
use super::frames::{BlockType, Site};
use super::options::ExplainOptions;
use super::records::Totals;

#[derive(Serialize)]
struct WireTotals {
    bytes: i128,
    blocks: i128,
    requested: i128,
    slop: i128,
}

impl From<Totals> for WireTotals {
    fn from(totals: Totals) -> Self {
        let Totals { blocks, req, slop } = totals;
        Self { bytes: totals.usable(), blocks, requested: req, slop }
    }
}

#[derive(Serialize)]
struct WireGroup<'a> {
    name: &'a str,
    all: WireTotals,
    unreported: WireTotals,
    twice: WireTotals,
}

impl<'a> From<&'a Group> for WireGroup<'a> {
    fn from(group: &'a Group) -> Self {
        let Group { name, all, unreported, twice } = group;
        Self { name, all: (*all).into(), unreported: (*unreported).into(), twice: (*twice).into() }
    }
}

/// Writes the first `top` groups as a JSON list.
///
/// # Errors
///
/// If writing fails.
pub fn write_groups_json(groups: &[Group], top: usize, out: &mut dyn Write) -> io::Result<()> {
    let wire: Vec<WireGroup<'_>> = groups.iter().take(top).map(WireGroup::from).collect();
    write(&wire, out)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireExplained<'a> {
    heap: WireTotals,
    untracked: WireUntracked,
    heap_unclassified: i128,
    classes: Vec<WireClass<'a>>,
    wrong: Vec<WireWrong<'a>>,
}

/// Blocks whose requested bytes are unknown.
#[derive(Serialize)]
struct WireUntracked {
    bytes: u64,
    blocks: u64,
}

#[derive(Serialize)]
struct WireClass<'a> {
    class: &'static str,
    all: WireTotals,
    places: Vec<WirePlace<'a>>,
}

#[derive(Serialize)]
struct WirePlace<'a> {
    #[serde(flatten)]
    totals: WireTotals,
    #[serde(flatten)]
    site: WireSite<'a>,
    reporters: &'a [String],
    #[serde(rename = "remedy")]
    suggestion: Option<&'a str>,
}

#[derive(Serialize)]
struct WireSite<'a> {
    /// The type if the frames prove it: guesses are left out.
    #[serde(rename = "type")]
    known_type: Option<&'a str>,
    #[serde(rename = "crate")]
    krate: Option<&'a str>,
    own: Option<&'a str>,
    frames: &'a [String],
}

#[derive(Serialize)]
struct WireWrong<'a> {
    is: &'static str,
    reporter: &'a str,
    reports: u64,
    claimed: i128,
    usable: i128,
    #[serde(rename = "remedy")]
    suggestion: Option<&'a str>,
    #[serde(flatten)]
    site: Option<WireSite<'a>>,
}

impl<'a> From<&'a Site> for WireSite<'a> {
    fn from(site: &'a Site) -> Self {
        let known_type = match &site.block_type {
            BlockType::Known(name) => Some(&**name),
            _ => None,
        };
        Self {
            known_type,
            krate: site.krate.as_deref(),
            own: site.own.as_deref(),
            frames: &site.frames,
        }
    }
}

impl<'a> From<&'a Place> for WirePlace<'a> {
    fn from(place: &'a Place) -> Self {
        Self {
            totals: place.totals.into(),
            site: (&place.site).into(),
            reporters: &place.reporters,
            suggestion: place.suggestion.as_deref(),
        }
    }
}

impl<'a> From<&'a WrongPlace> for WireWrong<'a> {
    fn from(place: &'a WrongPlace) -> Self {
        Self {
            is: kind_name(place.kind),
            reporter: &place.reporter,
            reports: place.num,
            claimed: place.claimed,
            usable: place.usable,
            suggestion: place.suggestion.as_deref(),
            site: place.site.as_ref().map(WireSite::from),
        }
    }
}

/// Writes an explained dump as a JSON object with the first `top` places of each class.
///
/// # Errors
///
/// If writing fails.
pub fn write_explained_json(
    explained: &Explained,
    options: &ExplainOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let classes = explained.places.iter().map(|ClassPlaces { class, places, .. }| WireClass {
        class: class.name(),
        all: explained.totals(*class).into(),
        places: places.iter().take(options.top).map(WirePlace::from).collect(),
    });
    let wire = WireExplained {
        heap: explained.heap.into(),
        untracked: WireUntracked {
            bytes: explained.untracked.bytes,
            blocks: explained.untracked.blocks,
        },
        heap_unclassified: explained.heap_unclassified(),
        classes: classes.collect(),
        wrong: explained.wrong.iter().map(WireWrong::from).collect(),
    };
    write(&wire, out)
}

fn write(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
