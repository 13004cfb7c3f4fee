//! `about-memory ps`: the programs that can be asked, and how much of their heap nobody reports.

use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use memreport::serve::protocol::Status;
use memreport::snapshot::read::{self, Entry, Field, Options, Sink};
use serde_json::json;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

use crate::amount::Amount;
use crate::live::{self, Connection, LiveError, Program};
use crate::numbers::{self, Bytes, Unit};

/// `about-memory ps`
#[derive(Debug, Args)]
pub struct PsArgs {
    /// Ask no program for a report, so that none of them measures anything: what is unclassified stays unknown
    #[arg(long)]
    quick: bool,
    /// How many seconds a program may take to answer
    #[arg(long, value_name = "SECONDS", default_value = "0.25", value_parser = seconds)]
    patience: Duration,
    /// Look for sockets in this folder alone
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print a JSON array, for scripts: bytes as numbers
    #[arg(long)]
    json: bool,
}

/// `0.25`: a time in seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "write it as `0.25`".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(3600))
        .ok_or_else(|| "between 0 and 3600 seconds".to_owned())
}

/// What is known of one program.
#[derive(Debug)]
struct Row {
    pid: u32,
    status: Result<Status, LiveError>,
    /// Bytes of the tree `explicit`, and those of them that nobody reports; or why that is not known.
    measured: Result<Sums, String>,
}

/// Runs the subcommand.
///
/// # Errors
/// Those of `out`.
pub fn main(args: &PsArgs, out: &mut dyn Write, notes: &mut dyn Write) -> io::Result<()> {
    let mut found = args.folder.as_deref().map_or_else(live::find, live::find_in);
    found.sort_by_key(|program| program.pid);
    let rows = ask_all(found, args);
    let (rows, silent): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.status.is_ok());
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &rows.iter().map(wire).collect::<Vec<_>>())?;
        writeln!(out)?;
    } else if rows.is_empty() {
        writeln!(
            out,
            "No program of yours can be asked. Call `memreport::serve()` in a program, and it stands here."
        )?;
    } else {
        writeln!(out, "{}", table(&rows))?;
    }
    out.flush()?;
    for Row { pid, status, .. } in &rows {
        for said in status.iter().flat_map(|status| &status.saved) {
            writeln!(notes, "note: {pid}: {said}")?;
        }
    }
    for row in silent {
        match row.status {
            // A socket that a program has left, or one that was just removed.
            Ok(_) | Err(LiveError::NotServing(..) | LiveError::NoProcess(_)) => {}
            // One in a container that shares the folder, and has this number there: it is listed by its own here.
            Err(LiveError::WrongPeer { peer, .. }) if rows.iter().any(|row| row.pid == peer) => {}
            Err(error) => writeln!(notes, "note: {error}")?,
        }
    }
    Ok(())
}

/// Asks all at once: one that is slow costs the others nothing.
fn ask_all(programs: Vec<Program>, args: &PsArgs) -> Vec<Row> {
    thread::scope(|scope| {
        let asked: Vec<_> =
            programs.into_iter().map(|program| scope.spawn(|| ask(program, args))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
    })
}

fn ask(program: Program, args: &PsArgs) -> Row {
    let pid = program.pid;
    let connection = Connection::new(program, args.patience);
    let status = connection.status();
    let measured = match (&status, args.quick) {
        (Err(_), _) => Err(String::new()),
        (Ok(_), true) => Err("not asked".to_owned()),
        (Ok(_), false) => measure(&connection),
    };
    Row { pid, status, measured }
}

fn measure(connection: &Connection) -> Result<Sums, String> {
    let report = connection.report(false).map_err(|error| match error {
        LiveError::Io(..) | LiveError::Refused(..) => "busy".to_owned(),
        other => other.to_string(),
    })?;
    let mut sums = Sums::default();
    read::read(&mut &report.report[..], Options::default(), &mut sums)
        .map_err(|error| error.to_string())?;
    Ok(sums)
}

/// What a report comes to.
#[derive(Debug, Default)]
struct Sums {
    heap: i64,
    non_heap: i64,
    heap_allocated: Option<i64>,
}

impl Sums {
    /// Bytes on the heap that nobody reports, where the allocator counts.
    fn unclassified(&self) -> Option<i64> {
        Some(self.heap_allocated? - self.heap)
    }

    /// Their share of `explicit`, in percent.
    fn share(&self) -> Option<f64> {
        let unclassified = self.unclassified()?;
        let explicit = self.heap + self.non_heap + unclassified;
        #[expect(clippy::cast_precision_loss, reason = "a share, printed with two digits")]
        let share = unclassified as f64 * 100.0 / explicit.max(1) as f64;
        Some(share)
    }
}

impl Sink for Sums {
    fn restart(&mut self) {
        *self = Sums::default();
    }

    fn report(
        &mut self,
        entry: &Entry<'_>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let (Field::Number(kind), Field::Number(amount)) = (&entry.kind, &entry.amount) else {
            return Ok(());
        };
        #[expect(clippy::cast_possible_truncation, reason = "bytes, as the program wrote them")]
        let amount = *amount as i64;
        if entry.path.starts_with("explicit/") {
            if *kind == 1.0 { self.heap += amount } else { self.non_heap += amount }
        } else if entry.path == "heap-allocated" {
            self.heap_allocated = Some(amount);
        }
        Ok(())
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Builder::default();
    table.push_record(["pid", "name", "resident", "heap", "unclassified", "tracking"]);
    for Row { pid, status, measured } in rows {
        let Ok(status) = status else { continue };
        table.push_record([
            pid.to_string(),
            status.name.clone(),
            megabytes(status.resident),
            megabytes(status.heap_allocated),
            match measured {
                Ok(sums) => sums
                    .share()
                    .map_or_else(|| "not known".to_owned(), |share| format!("{share:.2}%")),
                Err(why) => why.clone(),
            },
            status.tracking.clone(),
        ]);
    }
    let mut table = table.build();
    table.with(Style::blank());
    table.modify(Columns::one(0), Alignment::right());
    table.modify(Columns::new(2..5), Alignment::right());
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn megabytes(bytes: Option<u64>) -> String {
    #[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
    let amount = bytes.map(|bytes| Amount::Number(bytes as f64));
    amount.map_or_else(
        || "not known".to_owned(),
        |amount| numbers::amount(&amount, Unit::Bytes, Bytes::Mb),
    )
}

fn wire(row: &Row) -> serde_json::Value {
    let status = row.status.as_ref().ok();
    let sums = row.measured.as_ref().ok();
    json!({
        "pid": row.pid,
        "name": status.map(|status| &status.name),
        "resident": status.and_then(|status| status.resident),
        "heapAllocated": status.and_then(|status| status.heap_allocated),
        "heapBlocks": status.and_then(|status| status.heap_blocks),
        "heapUnclassified": sums.and_then(Sums::unclassified),
        "tracking": status.map(|status| &status.tracking),
        "saved": status.map(|status| &status.saved),
        "commands": status.map(|status| {
            status.commands.iter().map(|command| &command.name).collect::<Vec<_>>()
        }),
    })
}
