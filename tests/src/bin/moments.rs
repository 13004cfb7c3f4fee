//! A program that ends in every possible way, with one reported and one leaked structure.

use std::time::Duration;

use memreport::{Collector, MallocSizeOf};

dmd::global_allocator!();

#[derive(MallocSizeOf)]
struct Kept {
    words: Vec<String>,
}

static KEPT: std::sync::Mutex<Option<Kept>> = std::sync::Mutex::new(None);

memreport::reporter!("explicit/moments/kept", KEPT, "Words that are kept.");

/// Returns unreported blocks, which `main` drops when it returns.
#[inline(never)]
fn forgotten() -> Vec<u8> {
    vec![7; 1_000_000]
}

memreport::reporter!(visited);

fn visited(reports: &mut memreport::Reports<'_>) {
    let page = if reports.anonymize() { "<anonymized>" } else { "private-word" };
    reports.add(memreport::Report::count(format!("visited/{page}"), 1, "A page."));
}

fn main() -> std::io::Result<()> {
    let words = (0..1000).map(|number| format!("word number {number}")).collect();
    *KEPT.lock().expect("nobody panics") = Some(Kept { words });
    let forgotten = std::hint::black_box(forgotten());
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("save") => save()?,
        Some("wait") => {
            let seconds = args.next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
            std::thread::sleep(Duration::from_secs_f64(seconds));
        }
        Some("peak") => peak(),
        Some("terminate") => {
            kill_self()?;
            std::thread::sleep(Duration::from_secs(10));
        }
        Some("fail") => std::process::exit(7),
        Some("abort") => std::process::abort(),
        Some("start") => {
            // The child inherits the environment, but has no DMD that reads it.
            std::process::Command::new("true").status()?;
            save()?;
        }
        _ => {}
    }
    drop(forgotten);
    Ok(())
}

fn save() -> std::io::Result<()> {
    let path = std::env::temp_dir().join(format!("moments-{}.json.gz", std::process::id()));
    Collector::default().moment("after the work was done").snapshot().save(&path)?;
    std::fs::remove_file(path.with_extension("").with_extension("dmd.json.gz")).ok();
    std::fs::remove_file(path)
}

/// Grows to 32 MB, stays a while, and shrinks.
fn peak() {
    let mut heap = Vec::new();
    for _ in 0..32 {
        heap.push(vec![1_u8; 1_000_000]);
        std::thread::sleep(Duration::from_millis(5));
    }
    // Long enough for a thread that looks, on a busy machine.
    std::thread::sleep(Duration::from_secs(1));
    drop(heap);
    std::thread::sleep(Duration::from_millis(50));
}

fn kill_self() -> std::io::Result<()> {
    let pid = std::process::id().to_string();
    std::process::Command::new("kill").args(["-TERM", &pid]).status().map(|_| ())
}
