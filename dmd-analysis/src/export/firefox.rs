//! The Firefox Profiler's processed profile, version 60.
//!
//! Each class of blocks is a thread, and reporters are categories.
//! A dump has no time: samples are at their places in the list, and weigh bytes. For recordings,
//! see [`timeline`].

mod tables;
pub mod timeline;

use std::io::{self, Write};
use std::time::UNIX_EPOCH;

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::analysis::number::saturated;
use crate::analysis::{Class, Totals};
use crate::heap::table::Table;
use crate::heap::{Amounts, Heap, Row};
use tables::Tables;

/// The version of the profile. Later versions of the profiler upgrade it when they load it.
const VERSION: u32 = 60;

/// The profiler's colours, without grey for unknown and red for unreported blocks.
const COLORS: [&str; 7] = ["blue", "green", "orange", "purple", "yellow", "lightblue", "brown"];

/// Writes the profile.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    let mut shared = Shared::default();
    // The profiler demands a grey category.
    shared.categories.number("Other".to_owned());
    let mut threads = Vec::new();
    for Track { name, class, amount } in tracks(heap) {
        let is_in = |row: &&Row| class.is_none_or(|class| row.kind.class == class);
        let rows = heap.rows.iter().filter(is_in);
        let samples = samples(heap, rows, amount, &mut shared);
        let mut track = thread(heap.process.name(), heap.process.pid, threads.len());
        track["name"] = name.into();
        track["samples"] = samples;
        threads.push(track);
    }
    let taken = heap.taken.and_then(|taken| taken.duration_since(UNIX_EPOCH).ok());
    let began = taken.map_or(0, |taken| u64::try_from(taken.as_millis()).unwrap_or(u64::MAX));
    let mut meta = meta(&format!("{} (heap)", heap.process.name()), began, threads.len());
    meta["categories"] = category_list(&shared.categories);
    let profile = json!({
        "meta": meta,
        "libs": [],
        "pages": [],
        "counters": [],
        "shared": shared.tables.into_json(),
        "threads": threads,
    });
    serde_json::to_writer(&mut *out, &profile)?;
    writeln!(out)
}

/// Returns the metadata of a profile without categories and markers. All its threads are shown, in
/// their order.
fn meta(product: &str, began_ms: u64, threads: usize) -> Value {
    json!({
        "interval": 1,
        "startTime": began_ms,
        "processType": 0,
        "product": product,
        "stackwalk": 1,
        "version": 24,
        "preprocessedProfileVersion": VERSION,
        "symbolicated": true,
        "importedFrom": "DMD",
        "sourceCodeIsNotOnSearchfox": true,
        "keepProfileThreadOrder": true,
        "initialVisibleThreads": (0..threads).collect::<Vec<_>>(),
        "initialSelectedThreads": [0],
        "markerSchema": [],
    })
}

/// The tables that all threads of a profile share.
#[derive(Default)]
struct Shared {
    tables: Tables,
    categories: Table<String>,
}

/// Blocks that are shown as a thread.
struct Track {
    name: &'static str,
    /// The class of the blocks; all if `None`.
    class: Option<Class>,
    /// Returns the amount of a row that is shown.
    amount: fn(&Row) -> Totals,
}

fn tracks(heap: &Heap) -> Vec<Track> {
    let live = |class: Class, of: Option<Class>| Track {
        name: class.heading(),
        class: of,
        amount: |row| row.live,
    };
    let allocated = Track { name: "Allocated", class: None, amount: |row| row.allocated };
    match (heap.only, heap.classes(), heap.amounts) {
        (Some(class), ..) => vec![live(class, None)],
        (None, [], Amounts::Live) => vec![live(Class::Live, None)],
        (None, [], Amounts::Allocated) => vec![allocated],
        (None, [], Amounts::Both) => vec![allocated, live(Class::Live, None)],
        (None, classes, _) => classes.iter().map(|class| live(*class, Some(*class))).collect(),
    }
}

/// Returns samples of bytes, one for each stack and category. Adds their stacks and categories to
/// the tables.
fn samples<'h>(
    heap: &Heap,
    rows: impl Iterator<Item = &'h Row>,
    amount: fn(&Row) -> Totals,
    shared: &mut Shared,
) -> Value {
    let mut places: Table<Option<u32>> = Table::default();
    let mut weights: Vec<i128> = Vec::new();
    let mut known: FxHashMap<(u32, u32), Option<u32>> = FxHashMap::default();
    for row in rows {
        let amount = amount(row);
        if amount.usable() == 0 {
            continue;
        }
        let category = shared.categories.number(category(heap, row));
        let stack = *known
            .entry((row.kind.stack, category))
            .or_insert_with(|| shared.tables.stack(heap.stack(row.kind.stack).rev(), category));
        let at = places.number(stack) as usize;
        if at == weights.len() {
            weights.push(0);
        }
        weights[at] = weights[at].saturating_add(amount.usable());
    }
    let length = weights.len();
    json!({
        "stack": places.values(),
        "time": (0..length).collect::<Vec<_>>(),
        "weight": weights.into_iter().map(saturated).collect::<Vec<_>>(),
        "weightType": "bytes",
        "length": length,
    })
}

fn category(heap: &Heap, row: &Row) -> String {
    match row.kind.class {
        Class::Live | Class::Cumulative | Class::Untracked => "Other".to_owned(),
        Class::Unreported => "unreported".to_owned(),
        Class::OnceReported | Class::TwiceReported => {
            let paths = row.kind.reports.iter().map(|report| heap.text(report.path));
            paths.collect::<Vec<_>>().join(" and ")
        }
    }
}

fn category_list(categories: &Table<String>) -> Value {
    let mut colors = COLORS.iter().cycle();
    let list = categories.values().iter().map(|name| {
        let color = match name.as_str() {
            "Other" => "grey",
            "unreported" => "red",
            _ => colors.next().copied().unwrap_or("blue"),
        };
        json!({ "name": name, "color": color, "subcategories": ["Other"] })
    });
    list.collect()
}

/// Returns a thread of a process, without name and samples.
fn thread(process: &str, pid: u32, number: usize) -> Value {
    json!({
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "processName": process,
        "isMainThread": number == 0,
        "pid": pid.to_string(),
        "tid": number,
        "markers": {
            "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
            "length": 0,
        },
    })
}
