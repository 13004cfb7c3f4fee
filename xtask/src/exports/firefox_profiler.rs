//! Mozilla's profiler-cli, which reads files with the Firefox Profiler's own code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::subject::Subject;
use super::{Bench, Client, equal, run};
use crate::Failure;

pub(super) const CLIENT: Client = Client {
    name: "firefox-profiler",
    needs: |tools| {
        tools.profiler_cli()?;
        tools.node().map(|_| ())
    },
    check,
};

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
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
    drop(session);
    // The same program imports DHAT's file. (Folded stacks too, but it makes a sample of each byte.)
    let session = Session::load(bench, &bench.export(&[subject], "dhat", &[])?)?;
    equal("DHAT, all", &session.thread(0)?.2, &sums.bytes)?;
    // Thread 3 is what lives at the end.
    equal("DHAT, at the end", &session.thread(3)?.2, &sums.live.unwrap_or(0))
}

/// A file that is loaded; its server ends with this value.
struct Session {
    node: PathBuf,
    client: PathBuf,
    folder: PathBuf,
}

impl Session {
    fn load(bench: &Bench, file: &Path) -> Result<Self, Failure> {
        // A socket is made in it, whose path may not be long.
        let folder = bench.folder.join("s");
        fs::create_dir_all(&folder)?;
        let (node, client) = (bench.tools.node()?, bench.tools.profiler_cli()?);
        let session = Session { node, client, folder };
        // It gives its own server half a second to start, which a busy machine may not have.
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
        // One that is there already has another file, or came too late.
        self.stop();
        run(self.command(&["load"]).arg(file).args(["--session", "s"]))
    }

    fn stop(&self) {
        // A server that has ended already is as good.
        let _ = self.command(&["stop", "s"]).output();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.client).args(words).env("PROFILER_CLI_SESSION_DIR", &self.folder);
        command
    }

    /// A thread's name, what its samples weigh, and how much that is in all.
    fn thread(&self, number: usize) -> Result<(String, String, i64), Failure> {
        run(&mut self.command(&["thread", "select", &format!("t-{number}"), "--session", "s"]))?;
        let text = run(&mut self.command(&["thread", "samples", "--session", "s", "--json"]))?;
        let samples: Value = serde_json::from_str(&text)?;
        let name = samples["context"]["selectedThreads"][0]["name"].as_str().unwrap_or_default();
        let unit = samples["weightType"].as_str().unwrap_or_default();
        // There is no breakdown of nothing.
        let bytes = samples["categoryBreakdown"]["totalSamples"].as_i64().unwrap_or(0);
        Ok((name.to_owned(), unit.to_owned(), bytes))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}
