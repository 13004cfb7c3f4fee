//! `cargo xtask foreign collecting [--launches N] [--dev]`: what a reporter takes while blocks are
//! tracked, beside asleep, in a server of crates.io.
//!
//! The server is mini-redis, a store in memory, over the system's allocator and over jemalloc. Its
//! copy gets the lines that the guide asks for, and `MallocSizeOf` derived for its state: a hash
//! map of texts and shared slices, in which one field of each entry is ignored. The reporter times
//! itself. Three servers run at once, with DMD asleep and with every block tracked from the start
//! and late. They get the same keys, and `about-memory` asks them in turn.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::published::{Allocator, Prepared, Published};
use super::server::{MINI_REDIS, Server};
use super::{Bench, number_after};
use crate::bench::figure::{Figure, lines, median, table};
use crate::build;
use crate::failure::Failure;

const LAUNCHES: usize = 5;

/// The times that a server is asked, of which the median counts.
const ASKS: usize = 7;

/// The largest time of the reporter while blocks are tracked, relative to asleep.
const TRACKED: f64 = 1.5;

const SERVER: Published = Published { features: &["memreport/bytes"], ..MINI_REDIS };

/// The report with the reporter's time, in nanoseconds.
const TIME: &str = "reporter-time";

/// The source of the server's state.
const STATE: &str = "src/db.rs";

/// The lines of the state that are replaced.
const LINES: [(&str, &str); 6] = [
    (
        "#[derive(Debug)]\nstruct State {\n",
        "#[derive(Debug)]\n#[cfg_attr(feature = \"dmd\", derive(memreport::MallocSizeOf))]\nstruct State {\n",
    ),
    (
        "#[derive(Debug)]\nstruct Entry {\n",
        "#[derive(Debug)]\n#[cfg_attr(feature = \"dmd\", derive(memreport::MallocSizeOf))]\nstruct Entry {\n",
    ),
    (
        "    pub_sub: HashMap<",
        "    #[cfg_attr(feature = \"dmd\", malloc_size_of(ignore = \"channels\"))]\n    pub_sub: HashMap<",
    ),
    (
        "    expirations: BTreeMap<",
        "    #[cfg_attr(feature = \"dmd\", malloc_size_of(ignore = \"no key expires\"))]\n    expirations: BTreeMap<",
    ),
    (
        "    expires_at: Option<Instant>,\n}",
        "    #[cfg_attr(feature = \"dmd\", malloc_size_of(ignore = \"owns nothing\"))]\n    expires_at: Option<Instant>,\n}",
    ),
    (
        "        // Start the background task.\n",
        r#"        #[cfg(feature = "dmd")]
        {
            let measured = shared.clone();
            let registration = memreport::register(move |reports: &mut memreport::Reports<'_>| {
                let state = measured.state.lock().unwrap();
                let begun = std::time::Instant::now();
                reports.measure("explicit/db", &*state, "The database.");
                let nanoseconds = begun.elapsed().as_nanos() as i64;
                let what = "The nanoseconds of the database's reporter.";
                reports.add(memreport::Report::count("reporter-time", nanoseconds, what));
            });
            std::mem::forget(registration);
        }

        // Start the background task.
"#,
    ),
];

/// Runs the measurement. Returns `false` if a target is missed.
pub(super) fn run(args: &[&str], bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let (mut launches, mut is_dev) = (LAUNCHES, false);
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match *word {
            "--dev" => is_dev = true,
            "--launches" => launches = number_after("--launches", &mut words)?,
            word => return Err(format!("`collecting` takes no `{word}`").into()),
        }
    }
    let copy = prepare(bench)?;
    let mut figures = Vec::new();
    for (name, allocator) in [("glibc", Allocator::SystemDmd), ("jemalloc", Allocator::JemallocDmd)]
    {
        let program = copy.build(allocator, is_dev)?;
        let (mut from_start, mut late) = (Vec::new(), Vec::new());
        let mut all: [Vec<f64>; 3] = Default::default();
        for launch in 0..launches {
            let answers = times(&program, launch, bench)?;
            let [asleep, started, tracked] = answers.each_ref().map(|times| middle(times));
            let milliseconds = [asleep, started, tracked].map(in_milliseconds);
            writeln!(
                out,
                "{name}, launch {launch}: milliseconds asleep, from the start, late: {milliseconds:.1?}"
            )?;
            out.flush()?;
            from_start.push(started / asleep);
            late.push(tracked / asleep);
            all.iter_mut().zip(answers).for_each(|(all, times)| all.extend(times));
        }
        write_quartiles(name, all, out)?;
        for (when, ratios) in [("from the start", from_start), ("late", late)] {
            let figure = Figure::new(format!("{name}: tracked {when}"), ratios);
            figures.push(figure.at_most(TRACKED, "x"));
        }
    }
    let build = if is_dev { "dev" } else { "release" };
    let title = format!("mini-redis {}, {build}, of asleep", SERVER.version);
    writeln!(out)?;
    table(&title, &figures, out)?;
    Ok(lines(&figures, out)?)
}

/// Makes the copy of the server, with a reporter.
fn prepare(bench: &Bench) -> Result<Prepared<'static>, Failure> {
    let copy = SERVER.prepare(bench)?;
    let state = copy.file(STATE);
    let mut text = fs::read_to_string(&state)?;
    for (before, after) in LINES {
        if text.matches(before).count() != 1 {
            return Err(format!("{STATE} of {} has no line {before:?}", SERVER.package).into());
        }
        text = text.replace(before, after);
    }
    fs::write(state, text)?;
    // The version that the server's lock file names is older than those that memreport measures.
    let mut update = build::cargo();
    update.args(["update", "--quiet", "--package", "bytes", "--manifest-path"]);
    if update.arg(copy.file("Cargo.toml")).status()?.success() {
        Ok(copy)
    } else {
        Err("`bytes` could not be updated".into())
    }
}

/// Writes the quartiles of all answers.
///
/// A server's answers take about the same time each, and another launch's up to twice as long,
/// probably by where its data lies in physical memory. The lower quartiles compare launches in
/// which that costs little.
fn write_quartiles(name: &str, answers: [Vec<f64>; 3], out: &mut dyn Write) -> Result<(), Failure> {
    let quartiles = answers.map(|mut times| {
        times.sort_by(f64::total_cmp);
        let at = |quarter: usize| times.get(times.len() * quarter / 4).copied().unwrap_or_default();
        [at(1), at(3)]
    });
    let [asleep, ..] = quartiles;
    for ([lower, upper], mode) in quartiles.into_iter().zip(["asleep", "from the start", "late"]) {
        let [low, high] = [lower, upper].map(in_milliseconds);
        let ratio = lower / asleep[0];
        writeln!(
            out,
            "{name}, quartiles of all answers {mode}: {low:.1} and {high:.1} ms; the lower one is {ratio:.2} of asleep's"
        )?;
    }
    Ok(())
}

/// Returns the median.
fn middle(times: &[f64]) -> f64 {
    median(times.to_vec()).0
}

fn in_milliseconds(nanoseconds: f64) -> f64 {
    nanoseconds / 1e6
}

/// Starts the three servers, and returns the times of each one's reporter in nanoseconds.
fn times(program: &Path, launch: usize, bench: &Bench) -> Result<[Vec<f64>; 3], Failure> {
    let start = |value| Server::start(program, ("DMD", value));
    let servers = [start("")?, start("1")?, start("")?];
    // The last server is tracked when it has half of its keys.
    for round in 0..2 {
        for server in &servers {
            server.fill(round)?;
        }
        if round == 0 {
            servers[2].track(bench)?;
        }
    }
    let mut answers: [Vec<f64>; 3] = Default::default();
    for ask in 0..ASKS {
        for turn in 0..servers.len() {
            let which = (launch + ask + turn) % servers.len();
            answers[which].push(ask_time(&servers[which], bench)?);
        }
    }
    Ok(answers)
}

/// Asks a server about itself, and returns the time of its reporter in nanoseconds.
fn ask_time(server: &Server, bench: &Bench) -> Result<f64, Failure> {
    let answer = bench.about_memory().arg(server.pid()).output()?;
    let text = String::from_utf8(answer.stdout)?;
    let line = text.lines().find(|line| line.contains(TIME));
    let number: String = line.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    number.parse().map_err(|_| {
        let errors = String::from_utf8_lossy(&answer.stderr);
        format!("`about-memory PID` has no {TIME}: {text}{errors}").into()
    })
}
