//! `cargo xtask stress snapshots [N]`: reports of a program that allocates on four threads and
//! holds the locks of its values half of the time.
//!
//! Every report is complete, and then near the truth, or states which reporters it misses. None
//! fails before its time limit.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use about_memory::input::live::{Connection, Program};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::build;
use crate::failure::Failure;

/// The time limit of a report.
const LIMIT: Duration = Duration::from_secs(30);

/// The largest distance of `heap-unclassified` from the truth, as a share of the heap.
const MOST: f64 = 0.005;

/// The outcomes of all reports.
#[derive(Debug, Default)]
struct Outcomes {
    complete: usize,
    marked: usize,
    /// Reports that failed, and how many of them before their time limit.
    failed: usize,
    failed_early: usize,
    /// The largest distance of a complete report, as a share of the heap.
    distance: f64,
    slowest: Duration,
}

/// Requests the reports. Returns `false` if one is wrong, or fails before its time limit.
pub(crate) fn run(count: Option<&str>, out: &mut dyn Write) -> Result<bool, Failure> {
    let count: usize = count.unwrap_or("1000").parse()?;
    let subject = build::release("memreport-tests", "contended")?;
    let folder = env::temp_dir().join(format!("xtask-snapshots-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut command = Command::new(subject);
    command.arg(format!("folder={}", folder.display())).arg("snapshots").env("DMD", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let (socket, unreported) = line.trim().split_once(' ').ok_or("no socket and bytes")?;
    let program = Program { pid: child.id(), socket: socket.into() };
    let connection = Connection::new(program, LIMIT);
    let outcomes = request(&connection, count, unreported.parse()?);
    drop(child.stdin.take());
    child.wait()?;
    fs::remove_dir_all(&folder)?;
    let holds = write(&outcomes?, out)?;
    writeln!(out, "{}", if holds { "all of it holds" } else { "FAILED" })?;
    Ok(holds)
}

fn request(connection: &Connection, count: usize, truth: f64) -> Result<Outcomes, Failure> {
    let mut outcomes = Outcomes::default();
    for number in 0..count {
        let begin = Instant::now();
        // Every other one as `ps` requests it, and as `snapshot --dump`.
        let taken = connection.report(number % 2 == 0);
        let time = begin.elapsed();
        outcomes.slowest = outcomes.slowest.max(time);
        let Ok(taken) = taken else {
            outcomes.failed += 1;
            outcomes.failed_early += usize::from(time < LIMIT);
            continue;
        };
        let report: Value = serde_json::from_reader(GzDecoder::new(&taken.report[..]))?;
        let (heap, unclassified) = sums(&report);
        if report.pointer("/memreport/missed").is_some() {
            outcomes.marked += 1;
        } else {
            outcomes.complete += 1;
            outcomes.distance = outcomes.distance.max((unclassified - truth).abs() / heap);
        }
    }
    Ok(outcomes)
}

/// Returns `heap-allocated` and `heap-unclassified` of a report, as viewers compute them.
fn sums(report: &Value) -> (f64, f64) {
    let (mut heap, mut reported) = (0.0, 0.0);
    for report in report["reports"].as_array().into_iter().flatten() {
        let amount = report["amount"].as_f64().unwrap_or_default();
        match report["path"].as_str().unwrap_or_default() {
            "heap-allocated" => heap = amount,
            path if path.starts_with("explicit/") && report["kind"] == 1 => reported += amount,
            _ => {}
        }
    }
    (heap, heap - reported)
}

/// Writes the table. Returns whether all holds.
fn write(outcomes: &Outcomes, out: &mut dyn Write) -> Result<bool, Failure> {
    let Outcomes { complete, marked, failed, failed_early, distance, slowest } = outcomes;
    writeln!(
        out,
        "complete | marked | failed | of them early | farthest from the truth | slowest"
    )?;
    writeln!(
        out,
        "{complete:8} | {marked:6} | {failed:6} | {failed_early:13} | {:21.3} % | {slowest:.1?}",
        distance * 100.0
    )?;
    Ok(*failed_early == 0 && *distance <= MOST && complete + marked > 0)
}
