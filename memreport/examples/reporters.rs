//! Registers reporters, prints the reports of a snapshot, and saves it.
//!
//! Run it with `cargo run -p memreport --example reporters`, and a file to keep the snapshot.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::{Arc, Mutex};
use std::{env, io};

use memreport::{MallocSizeOf, Report, Reports, Units};

memreport::global_allocator!();

/// A cache of rendered pages.
#[derive(MallocSizeOf)]
struct Cache {
    pages: Mutex<Vec<String>>,
}

static CACHE: Cache = Cache { pages: Mutex::new(Vec::new()) };

// A reporter that is registered at link time: a path in the tree `explicit`, the static to measure,
// and a description. Locks inside it are only tried, and count as busy if that fails.
memreport::reporter!("explicit/cache", CACHE, "Rendered pages.");

// A reporter can also be a function that makes several reports, here a count outside the tree.
memreport::reporter!(|reports| {
    let pages = CACHE.pages.try_lock().map_or(0, |pages| pages.len());
    let pages = i64::try_from(pages).unwrap_or(i64::MAX);
    reports.add(Report::count("cached-pages", pages, "The number of cached pages."));
});

fn main() -> io::Result<()> {
    if let Ok(mut pages) = CACHE.pages.lock() {
        pages.extend((0..10).map(|number| format!("page {number} ").repeat(50)));
    }

    // Reports a value for as long as both the value and the registration live.
    let session = Arc::new(vec!["a user".to_owned()]);
    let _session = memreport::report_value("explicit/sessions/1", &session, "One session.");

    // A closure is a reporter too. Memory from the operating system is not on the heap.
    let _textures = memreport::register(|reports: &mut Reports<'_>| {
        let bytes = 1 << 20;
        reports.add(Report::non_heap("explicit/textures", bytes, "Textures in a mapping."));
    });

    let snapshot = memreport::snapshot();
    for Report { path, amount, units, .. } in &snapshot.reports {
        if path.starts_with("explicit/") || *units == Units::Count {
            println!("{amount:>10}  {path}");
        }
    }

    // `about-memory FILE` prints it as a tree. Firefox's about:memory opens it as well.
    if let Some(file) = env::args_os().nth(1) {
        return snapshot.save(file);
    }
    let file = env::temp_dir().join(format!("reporters-{}.json.gz", std::process::id()));
    snapshot.save(&file)?;
    println!("saved as {}", file.display());
    std::fs::remove_file(file)
}
