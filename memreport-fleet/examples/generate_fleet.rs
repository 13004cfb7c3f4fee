//! Generates the dataset of a fleet: services, versions, hosts and days, with planted regressions,
//! outliers and leaks.
//!
//! ```text
//! cargo run -p memreport-fleet --example generate_fleet -- --hosts 1000 --days 7 -o fleet
//! ```
//!
//! Every snapshot is a report, and one a day also a dump: texts that pass through the same code as
//! those of real programs. `--files` keeps them. What is planted is in `planted.json`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use memreport_analysis::read;
use memreport_fleet::dataset::Partition;
use memreport_fleet::gather::{Batch, Snapshot};
use memreport_fleet::resource::Resource;
use serde_json::{Value, json};

#[derive(Debug, Parser)]
struct Args {
    /// The number of services
    #[arg(long, default_value_t = 4)]
    services: u64,
    /// The releases of each service
    #[arg(long, default_value_t = 3)]
    versions: u64,
    /// The hosts, each of which runs one service
    #[arg(long, default_value_t = 24)]
    hosts: u64,
    /// The days
    #[arg(long, default_value_t = 7)]
    days: u64,
    /// The reports of a host a day
    #[arg(long, default_value_t = 24)]
    reports: u64,
    /// The dumps of a host a day
    #[arg(long, default_value_t = 1)]
    dumps: u64,
    /// The seed of random numbers
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Keep the single files in this folder
    #[arg(long)]
    files: Option<PathBuf>,
    /// The folder of the dataset
    #[arg(short, long)]
    output: PathBuf,
}

/// 2026-11-02 in UTC.
const FIRST_MS: u64 = 1_793_577_600_000;
const DAY_MS: u64 = 86_400_000;

/// A place that allocates: its function, type, scope and report, and its share of the heap in
/// thousandths.
struct Place {
    function: &'static str,
    file: &'static str,
    container: &'static str,
    scope: &'static str,
    path: Option<&'static str>,
    share: u64,
    size: u64,
    slop: u64,
}

const fn place(
    function: &'static str,
    container: &'static str,
    scope: &'static str,
    path: Option<&'static str>,
    [share, size, slop]: [u64; 3],
) -> Place {
    Place { function, file: "src/lib.rs", container, scope, path, share, size, slop }
}

const PLACES: [Place; 8] = [
    place("app::index::add", "Posting", "", Some("explicit/index/postings"), [300, 4096, 0]),
    place("app::index::grow", "u8", "", Some("explicit/index/text"), [150, 65_536, 512]),
    place("app::cache::insert", "Entry", "request", Some("explicit/cache"), [200, 240, 16]),
    place(
        "app::session::open",
        "Session",
        "request > login",
        Some("explicit/sessions"),
        [120, 1000, 24],
    ),
    place("app::render::page", "String", "request > render", None, [90, 2000, 48]),
    place("app::queue::push", "Job", "worker", None, [60, 120, 8]),
    place("app::log::line", "u8", "worker > log", None, [50, 500, 12]),
    place("app::config::load", "Value", "", Some("explicit/config"), [30, 64, 0]),
];

/// The place that grows in the planted regression.
const REGRESSED: usize = 2;

/// The growth of that place, in thousandths of the heap.
const REGRESSION: u64 = 90;

/// A snapshot of a host at one time.
struct Moment {
    service: u64,
    version: u64,
    host: u64,
    time_ms: u64,
    /// The bytes of each place.
    bytes: [u64; PLACES.len()],
}

/// The hosts that differ from the rule.
struct Planted {
    outliers: Vec<u64>,
    leaks: Vec<u64>,
}

/// Returns a random number below `bound`, for these coordinates.
fn random(seed: u64, at: [u64; 3], bound: u64) -> u64 {
    let mut state = seed;
    for number in at {
        state = state.wrapping_add(number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
    }
    state % bound
}

/// Returns a factor in 1/100,000 that is around 1, like a normal distribution of this deviation.
fn noise(seed: u64, at: [u64; 3], deviation: u64) -> u64 {
    // The sum of four uniform numbers; its deviation is 1/sqrt(3) of the width of one.
    let width = deviation * 1732 / 1000;
    let sum: u64 = (0..4).map(|part| random(seed + part, at, width + 1)).sum();
    100_000 + sum - width * 2
}

impl Args {
    /// Returns the version that a host runs on a day, and the day since when.
    fn version(&self, host: u64, day: u64) -> (u64, u64) {
        let of = |day: u64| {
            let rolled = (2 * day + host / self.services % 2) * self.versions / (2 * self.days);
            rolled.min(self.versions - 1)
        };
        let version = of(day);
        let since = (0..=day).find(|day| of(*day) == version).unwrap_or(day);
        (version, since)
    }

    fn planted(&self) -> Planted {
        // One outlier in a hundred hosts, and one leak.
        let few = (self.hosts / 100).max(1);
        let outliers = (0..few).map(|at| at * self.hosts / few + 1).collect();
        let leaks = (0..few).map(|at| at * self.hosts / few + 6 % self.hosts).collect();
        Planted { outliers, leaks }
    }

    fn moment(&self, planted: &Planted, host: u64, time_ms: u64) -> Moment {
        let day = (time_ms - FIRST_MS) / DAY_MS;
        let (service, (version, since)) = (host % self.services, self.version(host, day));
        let mut heap = (100 + 40 * service) << 20;
        heap = heap * noise(self.seed, [host, 0, 0], 2000) / 100_000;
        heap = heap * noise(self.seed, [host, time_ms, 1], 500) / 100_000;
        if planted.outliers.contains(&host) {
            heap = heap * 16 / 10;
        }
        let mut bytes = PLACES.map(|place| heap / 1000 * place.share);
        if service == 0 && version >= 2 {
            bytes[REGRESSED] += heap / 1000 * REGRESSION;
        }
        if planted.leaks.contains(&host) {
            // 8 % of the heap a day since the release was started.
            let age_ms = time_ms - FIRST_MS - since * DAY_MS;
            bytes[6] += heap / 100 * 8 * (age_ms / 3_600_000) / 24;
        }
        Moment { service, version, host, time_ms, bytes }
    }
}

/// A group of blocks.
struct Blocks {
    count: u64,
    usable: u64,
}

impl Moment {
    fn blocks(&self, at: usize) -> Blocks {
        let Place { size, slop, .. } = PLACES[at];
        let count = self.bytes[at] / (size + slop);
        Blocks { count, usable: count * (size + slop) }
    }

    fn resource(&self) -> Resource {
        let mut resource = Resource::default();
        resource.set("service.name", &format!("service-{}", self.service));
        resource.set("service.version", &format!("1.{}.0", self.version));
        resource.set("host.name", &format!("host-{:05}", self.host));
        resource.set("k8s.pod.name", &format!("service-{}-{}", self.service, self.host));
        resource.set("deployment.environment.name", "generated");
        resource
    }

    fn report(&self) -> Vec<u8> {
        let line = |path: &str, kind: u8, units: u8, amount: u64| {
            json!({ "process": format!("service-{} (pid 7)", self.service), "path": path, "kind": kind, "units": units,
                    "amount": amount, "description": "Generated." })
        };
        let (mut reports, mut heap, mut count) = (Vec::new(), 0, 0);
        for (at, place) in PLACES.iter().enumerate() {
            let Blocks { count: blocks, usable } = self.blocks(at);
            (heap, count) = (heap + usable, count + blocks);
            if let Some(path) = place.path {
                reports.push(line(path, 1, 0, usable));
            }
        }
        let overhead = heap / 100 * (5 + self.service);
        reports.extend([
            line("explicit/thread-stacks", 0, 0, 1 << 20),
            line("explicit/heap-overhead/unused", 0, 0, overhead),
            line("heap-allocated", 2, 0, heap),
            line("heap-allocations", 2, 1, count),
            line("heap-committed/allocated", 2, 0, heap),
            line("heap-committed/overhead", 2, 0, overhead),
            line("resident", 2, 0, heap + overhead + (8 << 20)),
            line("resident-peak", 2, 0, heap + overhead + (16 << 20)),
            line("vsize", 2, 0, 4 * heap),
            line("threads", 2, 1, 9),
            line("page-faults-soft", 2, 2, count / 7),
        ]);
        let allocator = if self.service.is_multiple_of(2) { "jemalloc" } else { "glibc" };
        let report = json!({
            "version": 1, "hasMozMallocUsableSize": true, "reports": reports,
            "memreport": {
                "version": 1, "timeMs": self.time_ms, "allocator": allocator,
                "process": { "name": format!("service-{}", self.service), "pid": 7,
                             "startMs": FIRST_MS - 1000 },
            },
        });
        report.to_string().into_bytes()
    }

    fn dump(&self) -> Vec<u8> {
        let (mut list, mut tables) = (Vec::new(), Tables::default());
        let mut scopes = Vec::<(u64, &str)>::new();
        let mut heap = 0;
        for (at, place) in PLACES.iter().enumerate() {
            let Blocks { count, usable } = self.blocks(at);
            heap += usable;
            let mut scope = 0;
            for name in place.scope.split(" > ").filter(|name| !name.is_empty()) {
                let known = scopes.iter().position(|known| *known == (scope, name));
                let place = known.unwrap_or_else(|| {
                    scopes.push((scope, name));
                    scopes.len() - 1
                });
                scope = place as u64 + 1;
            }
            // Two threads have the blocks, and the older half has an age of a minute.
            for (thread, age, count) in [(0, 60_000, count / 2), (1, 1000, count - count / 2)] {
                let mut block = json!({
                    "req": place.size, "slop": place.slop, "num": count, "alloc": key(at, 0),
                    "thread": thread, "ageMs": age, "scope": scope,
                });
                if place.path.is_some() {
                    block["reps"] = json!([key(at, 1)]);
                }
                list.push(block);
            }
            add_stacks(at, place, &mut tables);
        }
        let dump = json!({
            "version": 5, "invocation": { "dmdEnvVar": "1", "mode": "dark-matter" },
            "blockList": list, "traceTable": tables.traces,
            "frameTable": tables.frames,
            "memreport": {
                "version": 1, "mode": "dark-matter", "times": true,
                "program": format!("/srv/service-{}", self.service), "pid": 7,
                "uptimeMs": self.time_ms - FIRST_MS + 1000, "heapAllocated": heap,
                "trackerBytes": 1 << 20, "reports": tables.reports,
                "threads": [{ "id": 0, "tid": 7, "name": "main" },
                            { "id": 1, "tid": 8, "name": "worker" }],
                "scopes": scopes, "symbols": tables.symbols,
            },
        });
        dump.to_string().into_bytes()
    }
}

/// The tables of a dump that blocks refer to.
struct Tables {
    traces: Value,
    frames: Value,
    symbols: Value,
    reports: Value,
}

impl Default for Tables {
    fn default() -> Self {
        Tables { traces: json!({}), frames: json!({}), symbols: json!({}), reports: json!({}) }
    }
}

/// Returns a key of a place.
fn key(place: usize, number: usize) -> String {
    let letter = |number: usize| char::from(b'A' + u8::try_from(number).unwrap_or(0));
    [letter(place), letter(number)].iter().collect()
}

/// Adds the stack that allocates at a place, and the stack of its report.
fn add_stacks(at: usize, place: &Place, tables: &mut Tables) {
    let key = |number| key(at, number);
    tables.traces[key(0)] = json!([key(2), key(3), key(4), key(5)]);
    tables.traces[key(1)] = json!([key(6)]);
    let frame = |text: String| json!(format!("#00: {text}"));
    let Place { function, file, container, .. } = place;
    tables.frames[key(2)] = frame("alloc::raw_vec::grow_one".to_owned());
    tables.frames[key(3)] = frame("alloc::vec::push".to_owned());
    let symbol = |name: &str, file: &str| {
        json!({ "function": name, "name": format!("{name}<{container}, alloc::alloc::Global>"),
                "file": format!("/rustc/1/library/alloc/src/{file}"), "line": 340 })
    };
    tables.symbols[key(2)] = symbol("grow_one", "raw_vec.rs");
    tables.symbols[key(3)] = symbol("push", "vec/mod.rs");
    tables.frames[key(4)] = frame(format!("{function} ({file}:{})", 10 * (at + 1)));
    tables.frames[key(5)] = frame("app::main (src/main.rs:3)".to_owned());
    tables.frames[key(6)] = frame("app::report (src/main.rs:9)".to_owned());
    if let Some(path) = place.path {
        tables.reports[key(1)] = json!({ "path": path });
    }
}

/// The amount of data that was written.
#[derive(Default)]
struct Written {
    files: u64,
    bytes: u64,
    reports: u64,
    dumps: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let planted = args.planted();
    let mut written = Written::default();
    let begin = std::time::Instant::now();
    for host in 0..args.hosts {
        for day in 0..args.days {
            write_day(&args, &planted, [host, day], &mut written)?;
        }
    }
    let name = |host: &u64| format!("host-{host:05}");
    let facts = json!({
        "outliers": planted.outliers.iter().map(name).collect::<Vec<_>>(),
        "leaks": planted.leaks.iter().map(name).collect::<Vec<_>>(),
        "regression": {
            "service": "service-0", "version": "1.2.0", "before": "1.1.0",
            "site": format!("{} (src/lib.rs:{})", PLACES[REGRESSED].function, 10 * (REGRESSED + 1)),
            "path": PLACES[REGRESSED].path,
        },
        "files": written.files, "bytes": written.bytes,
        "reports": written.reports, "dumps": written.dumps,
    });
    fs::write(args.output.join("planted.json"), facts.to_string())?;
    #[expect(clippy::print_stdout, reason = "the result of the program")]
    {
        println!(
            "{} reports and {} dumps of {} hosts in {} files of {} bytes, {:.1} s",
            written.reports,
            written.dumps,
            args.hosts,
            written.files,
            written.bytes,
            begin.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Writes the files of a host's day: one for each table.
fn write_day(
    args: &Args,
    planted: &Planted,
    [host, day]: [u64; 2],
    written: &mut Written,
) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::default();
    let day_ms = FIRST_MS + day * DAY_MS;
    let mut partition = None;
    for at in 0..args.reports {
        let moment = args.moment(planted, host, day_ms + at * DAY_MS / args.reports);
        let resource = moment.resource();
        partition = Some(Partition::new(&resource, moment.time_ms));
        let report = moment.report();
        let snapshot = Snapshot::of_file(&report, moment.time_ms, resource.clone());
        batch.add_report(&snapshot, &report)?;
        keep(args, &snapshot, "json", &report)?;
        written.reports += 1;
        if at < args.dumps {
            let dump = moment.dump();
            let snapshot = Snapshot::of_file(&dump, moment.time_ms, resource);
            batch.add_dump(&snapshot, &read::read_slice(&dump)?)?;
            keep(args, &snapshot, "dmd.json", &dump)?;
            written.dumps += 1;
        }
    }
    let Some(partition) = partition else { return Ok(()) };
    for (table, rows) in batch.into_tables() {
        let path = args.output.join(partition.path(table, "day"));
        let bytes = rows.parquet()?;
        (written.files, written.bytes) = (written.files + 1, written.bytes + bytes.len() as u64);
        write(&path, &bytes)?;
    }
    Ok(())
}

/// Writes a single file, if they are wanted.
fn keep(
    args: &Args,
    snapshot: &Snapshot,
    ending: &str,
    bytes: &[u8],
) -> Result<(), Box<dyn Error>> {
    let Some(folder) = &args.files else { return Ok(()) };
    write(&folder.join(format!("{}.{ending}", snapshot.id)), bytes)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, bytes)?)
}
