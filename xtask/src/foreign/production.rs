//! `cargo xtask foreign production [MINUTES] [--dev]`: what a server pays for DMD over jemalloc.
//!
//! The server is mini-redis of crates.io, a store in memory, in a copy whose only changes are the
//! lines that the guide asks for, built for release or dev. Its client is redis-benchmark of
//! Debian, which sets and gets random keys. Six servers run at once: over jemalloc alone, with DMD
//! asleep, with DMD's profile, with every block tracked from the start or late, and with jemalloc's
//! own profiler. The client loads one after the other, in rounds, until each was loaded for the
//! minutes (10 by default). So all of them meet the same changes of the machine.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Bench;
use super::published::Allocator;
use super::server::{self, Load, MINI_REDIS, Server};
use crate::bench::figure;
use crate::failure::Failure;
use crate::on_path;

const MINUTES: f64 = 10.0;

/// The servers: jemalloc alone comes first, since the others are compared with it.
const VARIANTS: [Variant; 6] = [
    Variant { allocator: Allocator::Jemalloc, ..Variant::dmd("jemalloc alone", "") },
    Variant::dmd("DMD asleep", ""),
    Variant::dmd("DMD's profile", "--mode=profile"),
    Variant::dmd("every block, with stacks", "1"),
    Variant { is_late: true, ..Variant::dmd("the same, tracked late", "") },
    Variant {
        name: "jemalloc's profiler",
        allocator: Allocator::JemallocProfiler,
        variable: ("_RJEM_MALLOC_CONF", "prof:true,lg_prof_sample:19"),
        is_late: false,
    },
];

struct Variant {
    name: &'static str,
    allocator: Allocator,
    variable: (&'static str, &'static str),
    /// True if `about-memory track` begins tracking, once the server has all keys.
    is_late: bool,
}

impl Variant {
    const fn dmd(name: &'static str, variable: &'static str) -> Self {
        let allocator = Allocator::JemallocDmd;
        Self { name, allocator, variable: ("DMD", variable), is_late: false }
    }
}

/// Runs the measurement. Returns `false` if a server or an answer fails.
pub(super) fn run(args: &[&str], bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let is_dev = args.contains(&"--dev");
    let minutes = match args.iter().filter(|arg| **arg != "--dev").collect::<Vec<_>>()[..] {
        [] => MINUTES,
        [minutes] => minutes.parse().map_err(|_| format!("{minutes} is no number of minutes"))?,
        _ => return Err("`production` takes a number of minutes and `--dev`".into()),
    };
    on_path::find(&["redis-benchmark"], "redis-tools")?;
    let copy = MINI_REDIS.prepare(bench)?;
    let mut servers = Vec::new();
    for variant in &VARIANTS {
        let program = copy.build(variant.allocator, is_dev)?;
        servers.push(Server::start(&program, variant.variable)?);
    }
    // The first rounds insert the keys and are not counted.
    for (variant, server) in VARIANTS.iter().zip(&mut servers) {
        server.load()?;
        if variant.is_late {
            server.track(bench)?;
        }
    }
    let mut rounds: Vec<Vec<Load>> = Vec::new();
    let begun = Instant::now();
    let whole = Duration::from_secs_f64(minutes * 60.0 * VARIANTS.len() as f64);
    while begun.elapsed() < whole {
        let first = rounds.len() % servers.len();
        let mut loads: Vec<(usize, Load)> = Vec::new();
        for turn in 0..servers.len() {
            let which = (first + turn) % servers.len();
            loads.push((which, servers[which].load()?));
        }
        loads.sort_by_key(|(which, _)| *which);
        rounds.push(loads.into_iter().map(|(_, load)| load).collect());
    }
    let build = if is_dev { "dev build" } else { "release build" };
    writeln!(out, "{build}, {} rounds\n", rounds.len())?;
    write_table(&rounds, &servers, out)?;
    let mut holds = true;
    for (variant, server) in VARIANTS.iter().zip(&servers) {
        if variant.allocator == Allocator::JemallocDmd {
            holds &= write_answer(variant, server, bench, out)?;
        }
    }
    Ok(holds)
}

fn write_table(
    rounds: &[Vec<Load>],
    servers: &[Server],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (requests, version) = (server::REQUESTS, MINI_REDIS.version);
    writeln!(
        out,
        "mini-redis {version}, in each round {requests} requests to set and {requests} to get\n"
    )?;
    writeln!(
        out,
        "{:24} {:>8} {:>8} {:>8} {:>8} {:>10}   processor time to jemalloc alone",
        "", "set/s", "get/s", "p99 set", "p99 get", "resident",
    )?;
    for (which, (variant, server)) in VARIANTS.iter().zip(servers).enumerate() {
        let median_of = |number: fn(&Load) -> f64| {
            figure::median(rounds.iter().map(|loads| number(&loads[which])).collect()).0
        };
        let ratios = rounds.iter().map(|loads| loads[which].processor / loads[0].processor);
        let (ratio, (low, high)) = figure::median(ratios.collect());
        writeln!(
            out,
            "{:24} {:8.0} {:8.0} {:5.3} ms {:5.3} ms {:6.1} MiB   {ratio:.3} ({low:.3} to {high:.3})",
            variant.name,
            median_of(|load| load.set.per_second),
            median_of(|load| load.get.per_second),
            median_of(|load| load.set.slow),
            median_of(|load| load.get.slow),
            server.resident()? / 1024.0,
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// Asks a server about itself as a user would. Returns `false` if it does not answer.
fn write_answer(
    variant: &Variant,
    server: &Server,
    bench: &Bench,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let begun = Instant::now();
    let mut ask: Command = bench.about_memory();
    let answer = ask.arg(server.pid()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let heap = text.lines().find(|line| line.contains("heap-allocated")).unwrap_or("no answer");
    let took = begun.elapsed().as_secs_f64();
    writeln!(out, "{}: about-memory PID after {took:.2} s: {}", variant.name, heap.trim())?;
    Ok(answer.status.success() && heap != "no answer")
}
