//! Mozilla's profiler-cli, which reads files with the Firefox Profiler's own code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::subject::{Recorded, Subject};
use super::{Bench, Client, equal, run};
use crate::failure::Failure;

pub(crate) const CLIENT: Client = Client {
    name: "firefox-profiler",
    needs: |tools| {
        tools.profiler_cli()?;
        tools.node().map(|_| ())
    },
    check,
};

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    let sums = &subject.sums;
    match &subject.recorded {
        Some(recorded) => check_timeline(bench, subject, recorded)?,
        None => check_dump(bench, subject)?,
    }
    // The same program imports DHAT's file. It also imports folded stacks, with a sample per byte.
    let session = Session::load(bench, &bench.export(&[subject], "dhat", &[])?)?;
    equal("DHAT, all", &session.thread(0)?.2, &sums.allocated)?;
    if let Some(recorded) = &subject.recorded {
        equal("DHAT, at the peak", &session.thread(2)?.2, &recorded.at_peak)?;
    }
    // Thread 3 holds the blocks that are live at the end.
    equal("DHAT, at the end", &session.thread(3)?.2, &sums.live.unwrap_or(0))
}

/// Checks the timeline of a recording: its views and its memory track.
fn check_timeline(bench: &Bench, subject: &Subject, recorded: &Recorded) -> Result<(), Failure> {
    let sums = &subject.sums;
    let session = Session::load(bench, &bench.export(&[subject], "firefox-profiler", &[])?)?;
    let retained = session.view(0, "native-retained-allocations")?;
    equal("Retained memory", &retained.bytes, &sums.bytes)?;
    if let Some((function, bytes)) = recorded.kept {
        equal(function, &retained.of(function), &bytes)?;
    }
    equal(recorded.given_back, &retained.of(recorded.given_back), &0)?;
    let allocated = session.view(0, "native-allocations")?;
    equal("Allocated memory", &allocated.bytes, &sums.allocated)?;
    let typed = session.view(0, "js-allocations")?;
    equal("JavaScript allocations", &typed.bytes, &sums.allocated)?;
    equal("it allocates", &(allocated.of(recorded.given_back) > 1_000_000), &true)?;
    let freed = sums.allocated - sums.bytes;
    for view in ["native-deallocations-memory", "native-deallocations-sites"] {
        equal(view, &session.view(0, view)?.bytes, &freed)?;
    }
    // The threads together own all blocks of the process.
    let threads = session.threads()?;
    let mut all = 0;
    for number in 1..threads {
        all += session.view(number, "native-retained-allocations")?.bytes;
    }
    equal("Retained memory of the threads", &all, &sums.bytes)?;
    equal("the memory track", &session.memory_track()?, &recorded.peak_sum)
}

fn check_dump(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    let sums = &subject.sums;
    let profile = bench.export(&[subject], "firefox-profiler", &[])?;
    let expected: Vec<(&str, i64)> = match (sums.classes, sums.live) {
        (Some([unreported, once, twice]), _) => {
            vec![("Unreported", unreported), ("Once-reported", once), ("Twice-reported", twice)]
        }
        (None, None) => vec![("Allocated", sums.bytes)],
        (None, Some(live)) if live != sums.bytes => vec![("Allocated", sums.bytes), ("Live", live)],
        (None, Some(live)) => vec![("Live", live)],
    };
    let session = Session::load(bench, &profile)?;
    for (number, (name, bytes)) in expected.into_iter().enumerate() {
        equal(name, &session.thread(number)?, &(name.to_owned(), "bytes".to_owned(), bytes))?;
    }
    Ok(())
}

/// A view of a thread: the bytes in all, and of each function with its callees.
struct View {
    bytes: i64,
    functions: Vec<(String, i64)>,
}

impl View {
    fn of(&self, function: &str) -> i64 {
        let shown = self.functions.iter().find(|(name, _)| name == function);
        shown.map_or(0, |(_, bytes)| bytes.abs())
    }
}

/// A loaded file. Its server ends when this is dropped.
struct Session {
    node: PathBuf,
    client: PathBuf,
    folder: PathBuf,
}

impl Session {
    fn load(bench: &Bench, file: &Path) -> Result<Self, Failure> {
        // It holds a socket, whose path must be short.
        let folder = bench.folder.join("s");
        fs::create_dir_all(&folder)?;
        let (node, client) = (bench.tools.node()?, bench.tools.profiler_cli()?);
        let session = Session { node, client, folder };
        // The tool waits half a second for its server, which is too short on a busy machine.
        let mut loaded = session.load_once(file);
        for _ in 0..10 {
            if loaded.is_ok() {
                break;
            }
            sleep(Duration::from_secs(2));
            loaded = session.load_once(file);
        }
        loaded.map(|_| session)
    }

    fn load_once(&self, file: &Path) -> Result<String, Failure> {
        // A running server has another file loaded, or started too late.
        self.stop();
        run(self.command(&["load"]).arg(file).args(["--session", "s"]))
    }

    fn stop(&self) {
        // A server that has ended already is fine.
        let _ = self.command(&["stop", "s"]).output();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.client).args(words).env("PROFILER_CLI_SESSION_DIR", &self.folder);
        command
    }

    /// Returns a view of a thread. A thread without blocks has no such view.
    fn view(&self, thread: usize, view: &str) -> Result<View, Failure> {
        run(&mut self.command(&["thread", "select", &format!("t-{thread}"), "--session", "s"]))?;
        match run(&mut self.command(&["strategy", view, "--session", "s"])) {
            Err(error) if error.to_string().contains("has no data") => {
                return Ok(View { bytes: 0, functions: Vec::new() });
            }
            answer => answer?,
        };
        let samples = self.json(&["thread", "samples"])?;
        equal("the view", &samples["callTreeSummaryStrategy"].as_str(), &Some(view))?;
        let functions = samples["topFunctionsByTotal"].as_array().into_iter().flatten();
        let functions = functions.map(|function| {
            let name = function["name"].as_str().unwrap_or_default().to_owned();
            (name, function["totalSamples"].as_i64().unwrap_or(0))
        });
        let bytes = samples["categoryBreakdown"]["totalSamples"].as_i64().unwrap_or(0);
        Ok(View { bytes, functions: functions.collect() })
    }

    /// Returns the number of threads.
    fn threads(&self) -> Result<usize, Failure> {
        let list = self.json(&["thread", "list"])?;
        list["threads"].as_array().map(Vec::len).ok_or_else(|| "no list of threads".into())
    }

    /// Returns the height of the memory track, from zero at its beginning.
    fn memory_track(&self) -> Result<i64, Failure> {
        let list = self.json(&["counter", "list"])?;
        let range = list["counters"][0]["stats"][0]["value"].as_i64();
        range.ok_or_else(|| "no memory track".into())
    }

    fn json(&self, words: &[&str]) -> Result<Value, Failure> {
        let words = [words, &["--session", "s", "--json"]].concat();
        Ok(serde_json::from_str(&run(&mut self.command(&words))?)?)
    }

    /// Returns a thread's name, the unit of its samples, and their sum.
    fn thread(&self, number: usize) -> Result<(String, String, i64), Failure> {
        run(&mut self.command(&["thread", "select", &format!("t-{number}"), "--session", "s"]))?;
        let samples = self.json(&["thread", "samples"])?;
        let name = samples["context"]["selectedThreads"][0]["name"].as_str().unwrap_or_default();
        let unit = samples["weightType"].as_str().unwrap_or_default();
        // An empty thread has no breakdown.
        let bytes = samples["categoryBreakdown"]["totalSamples"].as_i64().unwrap_or(0);
        Ok((name.to_owned(), unit.to_owned(), bytes))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}
