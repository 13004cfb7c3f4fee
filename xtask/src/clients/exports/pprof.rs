//! `go tool pprof`, on exported files and on a running service.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::Duration;

use super::subject::Subject;
use super::{Bench, Client, equal, run};
use crate::clients::service;
use crate::clients::service::Service;
use crate::failure::Failure;
use crate::on_path;
use crate::scratch::Scratch;

pub(crate) const CLIENT: Client =
    Client { name: "pprof", needs: |_| on_path::find(&["go"], "golang-go").map(|_| ()), check };

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    let sums = &subject.sums;
    let file = bench.export(&[subject], "pprof", &[])?;
    let file = file.to_str().ok_or("a path that is no text")?;
    let top = |options: &[&str]| {
        let words = [&["-top", "-nodefraction=0", "-unit=B"], options, &[file]].concat();
        pprof(&bench.folder, &words)
    };
    let total = |options: &[&str]| top(options).map(|text| total(&text));
    let of = |index: &str| total(&[&format!("-sample_index={index}")]);
    match sums.live {
        Some(live) => equal("inuse_space", &of("inuse_space")?, &Some(live))?,
        None => equal("alloc_space", &of("alloc_space")?, &Some(sums.allocated))?,
    }
    let has_allocated = sums.live != Some(sums.allocated);
    let objects = if has_allocated {
        equal("alloc_space", &of("alloc_space")?, &Some(sums.allocated))?;
        ("alloc_objects", sums.allocated_blocks)
    } else {
        ("inuse_objects", sums.blocks)
    };
    if objects.1.is_some() {
        equal(objects.0, &of(objects.0)?, &objects.1)?;
    }
    // The difference to itself is empty.
    let none = top(&[&format!("-diff_base={file}")])?;
    equal("-diff_base", &none.contains("Showing nodes accounting for 0,"), &true)?;
    let Some([unreported, once, twice]) = sums.classes else { return Ok(()) };
    let roots = top(&["-tagroot=reported", "-cum"])?;
    let tags = pprof(&bench.folder, &["-tags", "-unit=B", file])?;
    for (name, bytes) in [("no", unreported), ("once", once), ("twice", twice)] {
        if bytes > 0 {
            equal("-tagroot", &cumulative(&roots, name), &Some(bytes))?;
            equal("-tags", &of_tag(&tags, name), &Some(bytes))?;
            let focused = top(&[&format!("-tagfocus=reported=^{name}$")])?;
            let shown = focused.contains(&format!("Showing nodes accounting for {bytes}B,"));
            equal("-tagfocus", &shown, &true)?;
        }
    }
    let dark = bench.export(&[subject], "pprof", &["--only", "unreported"])?;
    let beyond = total(&[&format!("-base={}", dark.display())])?;
    equal("-base", &beyond, &Some(sums.bytes - unreported))
}

/// Runs the tool, which writes only to `folder`.
fn pprof(folder: &Path, words: &[&str]) -> Result<String, Failure> {
    let mut go = Command::new(on_path::find(&["go"], "golang-go")?);
    go.args(["tool", "pprof"]).args(words).current_dir(folder);
    run(go.env("HOME", folder).env("PPROF_TMPDIR", folder))
}

/// Parses the total of `-top -unit=B`: "… of 1234B total".
fn total(text: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.starts_with("Showing nodes accounting for"))?;
    let number = line.rsplit_once(" of ")?.1.strip_suffix(" total")?;
    number.trim_end_matches('B').parse().ok()
}

/// Parses the bytes of a function with its callees from `-top`.
fn cumulative(text: &str, function: &str) -> Option<i64> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.into_iter().find(|row| row.len() == 6 && row[5] == function)?;
    row[3].trim_end_matches('B').parse().ok()
}

/// Parses the bytes of a tag's value from `-tags -unit=B`: "1234.0B (5.00%): once".
fn of_tag(text: &str, value: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_suffix(value)?.strip_suffix("): "))?;
    line.trim_start().split_once(".0B")?.0.parse().ok()
}

/// The bytes of a page's block: glibc adds 8 to the 4,096 of its contents.
const PAGE: i64 = 4104;

/// Runs `cargo xtask clients pprof`: the tool fetches the heap of a running service and finds its
/// pages.
pub(crate) fn run_service(out: &mut dyn Write) -> Result<bool, Failure> {
    if let Err(words) = (CLIENT.needs)(&super::Tools::new(None)) {
        writeln!(out, "clients pprof: not run: {words}")?;
        return Ok(true);
    }
    let scratch = Scratch::new()?;
    let program = service::build()?;
    let mut failures = 0;
    // Of 2,000 blocks of this size, a sample at 4 KiB is off by 1.7 % on average.
    for (variable, percent) in [("--mode=live", 0), ("--mode=profile --sample-bytes=4K", 10)] {
        let service = Service::start(&program, variable)?;
        if let Err(error) = fetched(&service, &scratch.0, percent) {
            failures += 1;
            writeln!(out, "clients pprof: DMD={variable}: {error}")?;
        }
    }
    let verdict = match failures {
        0 => "fetches the heap of a running service, and what grows in it, and finds what it keeps",
        _ => "FAILED",
    };
    writeln!(out, "clients pprof: {verdict}")?;
    Ok(failures == 0)
}

/// Checks that the tool finds the service's pages within some percent, also those allocated during
/// its request.
fn fetched(service: &Service, folder: &Path, percent: i64) -> Result<(), Failure> {
    let pages = |path: &str, options: &[&str]| {
        let url = format!("http://{}{path}", service.address);
        let words = [&["-top", "-cum", "-unit=B", "-nodefraction=0"], options, &[&url]].concat();
        pprof(folder, &words).map(|text| cumulative(&text, "service::pages::new_page"))
    };
    let near = |what: &str, shown: Option<i64>, count: i64| {
        let expected = count * PAGE;
        let bytes = shown.unwrap_or(0);
        if (bytes - expected).abs() * 100 <= expected * percent {
            return Ok(());
        }
        equal(what, &bytes, &expected)
    };
    equal("before", &pages("/debug/pprof/heap", &[])?, &None)?;
    // The labels that stores of profiles tell processes apart by.
    let tags = pprof(folder, &["-tags", &format!("http://{}/debug/pprof/heap", service.address)])?;
    for (key, value) in [("service_name", "pages"), ("service_version", "1.4.2")] {
        let place = tags.find(&format!(" {key}: Total "));
        let of_key = place.and_then(|place| tags.get(place..)?.lines().nth(1));
        let is_all = of_key.is_some_and(|line| line.ends_with(&format!("(  100%): {value}")));
        equal(key, &is_all, &true)?;
    }
    service.get("/pages/2000")?;
    near("/debug/pprof/heap", pages("/debug/pprof/heap", &[])?, 2000)?;
    near(
        "/debug/pprof/allocs",
        pages("/debug/pprof/allocs", &["-sample_index=inuse_space"])?,
        2000,
    )?;
    // Only the pages allocated during the request, and none of the earlier ones.
    let growth = thread::scope(|scope| {
        let growth = scope.spawn(|| pages("/debug/pprof/heap", &["-seconds=4"]));
        sleep(Duration::from_secs(2));
        service.get("/pages/1000")?;
        growth.join().map_err(|_| "the tool's thread panicked")?
    })?;
    near("-seconds", growth, 1000)
}
