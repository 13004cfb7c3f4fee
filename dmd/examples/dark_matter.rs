//! Finds dark matter: a structure without a reporter.
//!
//! Run it with `cargo run -p memreport-dmd --example dark_matter`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Mutex;

use dmd::Dump;

dmd::global_allocator!();

/// The pages of the program. Their reporter is below.
static PAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/pages", PAGES, "The text of all pages.");

/// An index of the pages. It has no reporter, so it is dark matter.
static INDEX: Mutex<Vec<Vec<u32>>> = Mutex::new(Vec::new());

fn main() -> Result<(), Box<dyn Error>> {
    // Usually the user starts tracking, with `DMD=1` in the environment.
    dmd::start("1".parse()?)?;
    let pages = (0..100).map(|number| format!("page {number} ").repeat(100));
    PAGES.lock().map_err(|_| "poisoned")?.extend(pages);
    INDEX.lock().map_err(|_| "poisoned")?.extend((0..100).map(|number| vec![number; 1000]));

    // Runs all reporters, and compares their reports with every live block.
    let snapshot = memreport::snapshot();
    let dump = Dump::of(&snapshot).ok_or("DMD is asleep")?;
    let summary = dump.summary();
    println!("reported once: {} bytes in {} blocks", summary.once.bytes, summary.once.blocks);
    println!(
        "unreported: {} bytes in {} blocks",
        summary.unreported.bytes, summary.unreported.blocks
    );
    for error in dump.wrong_reports() {
        println!("wrong: {error}");
    }

    // Saves the dump beside the report. Looking up functions needs no running program.
    let report = std::env::temp_dir().join(format!("dark-matter-{}.json.gz", std::process::id()));
    snapshot.save(&report)?;
    let dump = dmd::dump::beside(&report);
    println!("The biggest unreported place is the vector of `INDEX`. To see it, with its line:");
    println!("    about-memory heap records --explain {}", dump.display());
    Ok(())
}
