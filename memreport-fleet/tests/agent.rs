//! An agent that is killed again and again ships every snapshot exactly once.
//!
//! The programs are this test itself, started as [`subject_program`]. Each counts its own
//! collections, so that a number that is there twice, or missing, is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use memreport_fleet::table::read_parquet;

static COLLECTIONS: AtomicI64 = AtomicI64::new(0);
memreport::reporter!(counted);

fn counted(reports: &mut memreport::Reports<'_>) {
    let number = COLLECTIONS.fetch_add(1, Ordering::Relaxed) + 1;
    reports.add(memreport::Report::count("shipped/collections", number, "The collections."));
}

/// Serves until its standard input ends.
#[test]
#[ignore = "a program that the tests start"]
fn subject_program() {
    memreport::serve().expect("the folder is there");
    let _ = std::io::stdin().read(&mut [0]);
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a folder that nobody else may enter, as sockets need it.
fn create_private(folder: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(folder).expect("it is new");
}

fn start_program(folder: &Path, number: usize) -> Running {
    let mut command = Command::new(std::env::current_exe().expect("a test"));
    command.args(["--exact", "agent::subject_program", "--ignored", "--nocapture"]);
    command.env("XDG_RUNTIME_DIR", folder).env("DMD", "1");
    command.env("OTEL_SERVICE_NAME", format!("shop-{number}"));
    command.env("OTEL_RESOURCE_ATTRIBUTES", "service.version=1.0,host.name=test");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    Running(child.expect("it is this test"))
}

struct Agent {
    running: Running,
    /// The lines of its standard error, as they come.
    lines: mpsc::Receiver<String>,
}

fn start_agent(folder: &Path, more: &[&str]) -> Agent {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memreport-fleet"));
    command.args(["agent", "--every", "40ms", "--batch", "150ms", "--max-share", "100"]);
    command.args(["--dump-every", "3", "--verbose"]);
    command.arg("--to").arg(format!("file://{}", folder.join("store").display()));
    command.arg("--spool").arg(folder.join("spool")).arg("--sockets").arg(folder.join("sockets"));
    let mut child = command.args(more).stderr(Stdio::piped()).spawn().expect("it is built");
    let notes = BufReader::new(child.stderr.take().expect("a pipe"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        notes.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    Agent { running: Running(child), lines }
}

/// Reads an agent's lines until it has taken a snapshot, and returns the number of that one.
fn first_taken(agent: &Agent) -> String {
    loop {
        let line = agent.lines.recv_timeout(Duration::from_secs(60)).expect("it takes a snapshot");
        if let Some(id) = line.strip_prefix("taken ") {
            return id.to_owned();
        }
    }
}

/// Kills an agent that still runs, and returns the lines that have not been read.
fn notes(agent: Agent) -> Vec<String> {
    drop(agent.running);
    agent.lines.iter().collect()
}

/// Returns the paths of all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn rows(folder: &Path, table: &str) -> Vec<RecordBatch> {
    let files = files(&folder.join("store/v1").join(table));
    let read = |path: PathBuf| read_parquet(fs::read(path).expect("a file")).expect("Parquet");
    files.into_iter().flat_map(read).collect()
}

fn texts<'b>(batch: &'b RecordBatch, column: &str) -> &'b StringArray {
    let column = batch.column_by_name(column).expect("it is a column");
    column.as_any().downcast_ref().expect("it has texts")
}

fn numbers<'b>(batch: &'b RecordBatch, column: &str) -> &'b Int64Array {
    let column = batch.column_by_name(column).expect("it is a column");
    column.as_any().downcast_ref().expect("it has numbers")
}

/// Returns how many collections the programs have counted that are not there. None is there twice.
fn missing_collections(folder: &Path, programs: usize) -> usize {
    let mut counted: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for batch in rows(folder, "reports") {
        let amounts = numbers(&batch, "amount").iter();
        let keys = texts(&batch, "path").iter().zip(texts(&batch, "service_name"));
        for ((path, service), amount) in keys.zip(amounts) {
            if path == Some("shipped/collections") {
                let numbers = counted.entry(service.expect("a name").to_owned()).or_default();
                numbers.push(amount.expect("a number"));
            }
        }
    }
    assert_eq!(counted.len(), programs);
    let mut gaps = 0;
    for numbers in counted.values_mut() {
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "a snapshot is there twice");
        gaps += usize::try_from(numbers[count - 1]).expect("it is small") - count;
    }
    gaps
}

#[test]
fn a_killed_agent_ships_every_snapshot_exactly_once() {
    const KILLS: usize = 5;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let sockets = folder.join("sockets");
    create_private(&sockets);
    let programs: Vec<Running> = (0..3).map(|number| start_program(&sockets, number)).collect();
    let begin = Instant::now();
    while files(&sockets).len() < programs.len() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the programs do not serve");
        thread::sleep(Duration::from_millis(20));
    }
    let mut taken = BTreeSet::new();
    for kill in 0..KILLS {
        let agent = start_agent(folder, &[]);
        taken.insert(first_taken(&agent));
        // Then SIGKILL, at any moment.
        thread::sleep(Duration::from_millis(170 * kill as u64));
        let lines = notes(agent);
        taken.extend(lines.iter().filter_map(|line| Some(line.strip_prefix("taken ")?.to_owned())));
    }
    let mut last = start_agent(folder, &["--rounds", "3"]);
    let status = last.running.0.wait().expect("it ends by itself");
    let lines = notes(last);
    assert!(status.success(), "{lines:?}");
    taken.extend(lines.iter().filter_map(|line| Some(line.strip_prefix("taken ")?.to_owned())));
    // The last agent alone takes nine, and each of the others has taken one.
    assert!(taken.len() >= 3 * 3 + KILLS, "{} snapshots are too few to tell", taken.len());

    let mut shipped: BTreeMap<String, usize> = BTreeMap::new();
    let mut dumps = 0;
    for batch in rows(folder, "snapshots") {
        let keys = texts(&batch, "snapshot_id").iter().zip(texts(&batch, "source"));
        for ((id, source), heap) in keys.zip(numbers(&batch, "heap_allocated_bytes")) {
            assert!(heap.is_some_and(|bytes| bytes > 0), "{source:?} without its heap");
            match source {
                Some("report") => *shipped.entry(id.expect("an id").to_owned()).or_default() += 1,
                _ => dumps += 1,
            }
        }
    }
    assert!(shipped.values().all(|count| *count == 1), "{shipped:?}");
    let missing: Vec<_> = taken.iter().filter(|id| !shipped.contains_key(*id)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "of {}", taken.len());
    assert!(dumps > 0, "every third snapshot has a dump");
    let blocks: usize = rows(folder, "blocks").iter().map(RecordBatch::num_rows).sum();
    assert!(blocks > dumps, "{blocks} groups of blocks");

    let gaps = missing_collections(folder, programs.len());
    // A killed agent had asked one program. A refused dump is a collection too, of which there are
    // none here: the tracker runs.
    assert!(gaps <= KILLS, "{gaps} collections are missing");
    let left: Vec<_> = files(&folder.join("spool"))
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name != "lock"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn metrics_of_the_agent_are_served_and_a_full_spool_stops_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let sockets = folder.join("sockets");
    create_private(&sockets);
    let _program = start_program(&sockets, 0);
    // No space at all, and no round that could be missed.
    let full = ["--spool-limit", "0", "--metrics", "127.0.0.1:0", "--batch", "1h"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_memreport-fleet"));
    command.args(["agent", "--every", "30ms"]).args(full);
    command.arg("--to").arg(format!("file://{}", folder.join("store").display()));
    command.arg("--spool").arg(folder.join("spool")).arg("--sockets").arg(&sockets);
    let mut agent = Running(command.stderr(Stdio::piped()).spawn().expect("it is built"));
    let mut line = String::new();
    let notes = agent.0.stderr.take().expect("a pipe");
    BufReader::new(notes).read_line(&mut line).expect("it prints the address");
    let address = line.trim().trim_start_matches("metrics are at http://");
    let address = address.trim_end_matches("/metrics").to_owned();
    let metric = |name: &str| {
        let mut stream = std::net::TcpStream::connect(&address).expect("it serves");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.expect("there is such a metric").parse::<f64>().expect("it is a number")
    };
    let begin = Instant::now();
    while metric("memreport_agent_skipped_rounds_total") < 1.0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no round was skipped");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(metric("memreport_agent_snapshots_total"), 0.0);
    assert_eq!(metric("memreport_agent_programs"), 1.0);
    assert_eq!(metric("memreport_agent_spool_bytes"), 0.0);
    assert!(metric("memreport_agent_resident_bytes") > 1e6);
}
