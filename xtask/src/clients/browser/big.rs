//! Big files on the page: the time until they are seen, and the frames while they are scrolled.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use super::{Bench, expect_equal};
use crate::failure::Failure;
use crate::generate::random::Random;

/// The most milliseconds from the request of a page to its picture, on a machine that does nothing
/// else.
const OPENED: f64 = 1000.0;
/// A busy machine may take this many times as long before the check fails.
const BUSY: f64 = 15.0;
/// The milliseconds of a frame at 60 frames a second.
const FRAME: f64 = 1000.0 / 60.0;

/// The frames while a table is scrolled.
struct Frames {
    /// Milliseconds of drawing: the median, and those within which 95 of 100 frames are drawn.
    median: f64,
    slow: f64,
    /// Milliseconds from one frame to the next, which the browser paints meanwhile: the median.
    between: f64,
    drawn: u64,
    rows: u64,
}

/// Opens 100,000 reports, filters and scrolls them.
pub(crate) fn reports(bench: &Bench) -> Result<String, Failure> {
    let report = |number: i64| {
        json!({
            "process": "big (pid 7)", "kind": 1, "units": 0, "amount": (number * 7919) % 10_007,
            "path": format!("explicit/part-{}/group-{}/item-{number}", number % 50, number % 1000),
            "description": "An item.",
        })
    };
    let reports: Vec<Value> = (0..100_000).map(report).collect();
    let file = bench.folder.join("many.json");
    let all = json!({ "version": 1, "hasMozMallocUsableSize": true, "reports": reports });
    fs::write(&file, all.to_string())?;
    let page = bench.page(std::slice::from_ref(&file))?.ok_or("no page was written")?;
    let size = fs::metadata(page.trim_start_matches("file://"))?.len() / 1024;
    let opened = opened(bench, &page)?;
    let mut times = Vec::new();
    for change in [
        json!({ "verbose": "1" }),
        json!({ "filter": "item-7" }),
        json!({ "filter": "", "verbose": "" }),
    ] {
        let took = bench.browser.run(
            "const start = performance.now(); await choose(arguments[0]); document.body.offsetHeight;
             return performance.now() - start",
            &[change],
        )?;
        times.push(took.as_f64().unwrap_or(f64::MAX).round());
    }
    bench.browser.run("return choose({ verbose: '1' })", &[])?;
    let frames = scrolled(bench)?;
    let name = file.display().to_string();
    expect_equal("100,000 lines", &bench.printed(&["--verbose", &name])?, &bench.copied()?)?;
    let message = format!(
        "{size} KB; {}; verbose {} ms, filter {} ms, back {} ms; {}",
        opened.text,
        times[0],
        times[1],
        times[2],
        frames.text()
    );
    if opened.is_slow() || frames.is_slow() || times.iter().any(|&time| time > 5_000.0) {
        return Err(message.into());
    }
    Ok(message)
}

/// Opens the heap of a dump with 300,000 stacks, and scrolls it.
pub(crate) fn stacks(bench: &Bench) -> Result<String, Failure> {
    let report = bench.folder.join("stacks.json");
    let own = json!({ "version": 1, "hasMozMallocUsableSize": true, "reports": [
        { "process": "big (pid 7)", "path": "explicit/a", "kind": 1, "units": 0, "amount": 1, "description": "One." },
        { "process": "big (pid 7)", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 1, "description": "All." },
    ] });
    fs::write(&report, own.to_string())?;
    fs::write(bench.folder.join("stacks.dmd.json"), dump(300_000))?;
    let page = bench.page(std::slice::from_ref(&report))?.ok_or("no page was written")?;
    let size = fs::metadata(page.trim_start_matches("file://"))?.len() / 1024;
    let of_reports = opened(bench, &page)?;
    let of_heap = opened(bench, &format!("{page}#view=heap&cut=0"))?;
    // Unfolded breadth first, as far as tens of thousands of rows.
    bench.browser.run(
        "const queue = [...table.items];
         for (let at = 0; at < queue.length && queue.length < 60_000; at++) {
           queue[at].isOpen = true;
           queue.push(...queue[at].kids);
         }
         table.layOut();
         table.draw(true)",
        &[],
    )?;
    let frames = scrolled(bench)?;
    let of_census = opened(bench, &format!("{page}#view=census&count=site"))?;
    let message = format!(
        "{size} KB; reports {}, heap {}, census {}; {}",
        of_reports.text,
        of_heap.text,
        of_census.text,
        frames.text()
    );
    let is_slow = [&of_reports, &of_heap, &of_census].iter().any(|opened| opened.is_slow());
    if is_slow || frames.is_slow() {
        return Err(message.into());
    }
    Ok(message)
}

/// The time until a page was drawn.
struct Opened {
    milliseconds: f64,
    text: String,
}

impl Opened {
    fn is_slow(&self) -> bool {
        self.milliseconds > OPENED * BUSY
    }
}

/// The number of times that a page is opened. Other programs make single times longer.
const TIMES: usize = 6;

/// A page with nothing on it, which shows how long the browser itself takes just then.
const EMPTY: &str = "<!DOCTYPE html><title>empty</title><body data-drawn=\"1\"><div id=\"panel\"></div>\
                     <script>performance.mark(\"drawn\")</script>";

/// Opens a page some times, in turns with an empty one, and returns the shortest time from its
/// request to its first drawing.
fn opened(bench: &Bench, page: &str) -> Result<Opened, Failure> {
    let empty = bench.folder.join("empty.html");
    fs::write(&empty, EMPTY)?;
    let empty = format!("file://{}", empty.display());
    let (mut best, mut of_empty) = (f64::MAX, f64::MAX);
    for _ in 0..TIMES {
        of_empty = of_empty.min(opened_once(bench, &empty)?);
        // The last one stays open.
        best = best.min(opened_once(bench, page)?);
    }
    let late = if best > OPENED { ", which is late" } else { "" };
    let text = format!("drawn after {best:.0} ms, an empty page after {of_empty:.0} ms{late}");
    Ok(Opened { milliseconds: best, text })
}

/// Returns the milliseconds from the request of a page to its first drawing.
fn opened_once(bench: &Bench, page: &str) -> Result<f64, Failure> {
    bench.browser.open("about:blank")?;
    bench.browser.open(page)?;
    // A question would slow the page down while it draws.
    sleep(Duration::from_secs(2));
    bench.drawn()?;
    let drawn = "return performance.getEntriesByName('drawn')[0].startTime";
    let seen = bench.browser.run(drawn, &[])?;
    Ok(seen.as_f64().ok_or("the page does not say when it was drawn")?)
}

/// Scrolls the table by a page and a half in each frame, and measures the drawing.
fn scrolled(bench: &Bench) -> Result<Frames, Failure> {
    let answer = bench.browser.run(
        "table.grid.scrollTop = 0;
         const [times, between] = [[], []];
         let last = performance.now();
         for (let at = 0; at < 120; at++) {
           table.grid.scrollTop += 1.5 * table.grid.clientHeight;
           const start = performance.now();
           table.draw(false);
           document.body.offsetHeight;
           times.push(performance.now() - start);
           await new Promise(resolve => requestAnimationFrame(resolve));
           between.push(performance.now() - last);
           last = performance.now();
         }
         times.sort((a, b) => a - b);
         between.sort((a, b) => a - b);
         return [times[60], times[114], between[60], table.drawn.size, table.rows.length]",
        &[],
    )?;
    let number = |at: usize| answer[at].as_f64().ok_or("the page measures no frames");
    let count = |at: usize| answer[at].as_u64().unwrap_or(0);
    let frames = Frames {
        median: number(0)?,
        slow: number(1)?,
        between: number(2)?,
        drawn: count(3),
        rows: count(4),
    };
    if frames.rows < 10_000 {
        return Err(format!("only {} rows were scrolled", frames.rows).into());
    }
    Ok(frames)
}

impl Frames {
    fn text(&self) -> String {
        let Frames { median, slow, between, drawn, rows } = self;
        format!(
            "a frame of {drawn} of {rows} rows while scrolling {median:.1} ms, 95% below {slow:.1} ms, \
             one every {between:.1} ms"
        )
    }

    fn is_slow(&self) -> bool {
        self.median > FRAME * BUSY
    }
}

/// Returns a dump with as many stacks: a tree of calls as that of a big program, with shared
/// beginnings.
fn dump(stacks: usize) -> String {
    let mut random = Random::new(7);
    let mut text = String::from(
        "{\"version\": 5, \"invocation\": {\"dmdEnvVar\": \"1\", \"mode\": \"live\"}, \"blockList\": [",
    );
    for stack in 0..stacks {
        let comma = if stack == 0 { "" } else { "," };
        let (size, number) = (16 + 16 * random.below(64), 1 + random.below(9));
        let _ = write!(
            text,
            "{comma}\n{{\"req\": {size}, \"num\": {number}, \"alloc\": \"s{stack}\"}}"
        );
    }
    text.push_str("], \"traceTable\": {");
    let mut frames: HashMap<u64, u64> = HashMap::new();
    for stack in 0..stacks {
        let comma = if stack == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n\"s{stack}\": [");
        // The digits of its number are the functions that it goes through, from `main` on.
        let mut calls: Vec<u64> = (0..8).collect();
        let mut rest = stack as u64;
        for level in 8..18 {
            calls.push(1000 * level + rest % 4);
            rest /= 4;
        }
        for (at, call) in calls.iter().rev().enumerate() {
            let next = frames.len() as u64;
            let frame = *frames.entry(*call).or_insert(next);
            let _ = write!(text, "{}\"f{frame}\"", if at == 0 { "" } else { ", " });
        }
        text.push(']');
    }
    text.push_str("}, \"frameTable\": {");
    for (at, (call, frame)) in frames.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}\n\"f{frame}\": \"#00: big::part_{}::function_{call} (src/part_{}.rs:{})\"",
            call % 97,
            call % 97,
            1 + call % 500
        );
    }
    text.push_str("}}");
    text
}
