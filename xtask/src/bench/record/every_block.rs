//! The cost of recording every block, beside the same run without recording and beside heaptrack.
//!
//! Recordings are timed from the start of the process to its end, so the time to finish the file
//! counts. heaptrack is timed inside the program, which leaves out its own start and end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::bench::figure::{Figure, lines, table};
use crate::bench::overhead::programs::{Builder, Files, heaptrack};
use crate::bench::overhead::rounds::{Effort, wall};
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The largest part of heaptrack's added time that a recording may add.
const PART: f64 = 0.5;

/// The builds of the tracked program.
const BUILDS: [&str; 2] = ["frame pointers", "default build"];

/// Seconds of one run: of the whole process, and of the work inside it.
#[derive(Clone, Copy)]
struct Times {
    whole: f64,
    inside: f64,
}

/// The programs, and the files that they read and write.
struct Bench {
    system: PathBuf,
    /// The tracked program in each of [`BUILDS`].
    tracked: [PathBuf; 2],
    about_memory: PathBuf,
    /// The reason why heaptrack cannot run, if there is one.
    peer: Result<(), String>,
    files: Files,
    recording: PathBuf,
}

/// Runs `cargo xtask bench record --every-block [--quick]`. Returns `false` when a target is
/// missed.
pub(super) fn run(is_quick: bool, out: &mut dyn Write) -> Result<bool, Failure> {
    let (effort, rounds, maps) =
        if is_quick { (Effort::QUICK, 3, "20") } else { (Effort::FULL, 15, "100") };
    let scratch = Scratch::new()?;
    let (framed, plain) = (Builder::framed()?, Builder::plain()?);
    let bench = Bench {
        system: plain.ours("workload-system", &[])?,
        tracked: [framed.ours("workload-dmd", &[])?, plain.ours("workload-dmd", &[])?],
        about_memory: build::release("about-memory", "about-memory")?,
        peer: heaptrack(),
        files: Files::write(&scratch.0, effort)?,
        recording: scratch.0.join("recording.gz"),
    };
    let json = bench.files.json[0].to_string_lossy().into_owned();
    let mut all = Vec::new();
    for words in [["json", &json], ["maps", maps]] {
        let figures = bench.figures(words, rounds)?;
        table(&format!("recording every block: {} (wall)", words[0]), &figures, out)?;
        all.extend(figures.into_iter().map(|figure| {
            let name = format!("{}: {}", words[0], figure.name);
            Figure { name, ..figure }
        }));
    }
    writeln!(out, "no event of any recording is lost\n")?;
    Ok(lines(&all, out)?)
}

/// The ratios of one build, a value for each round.
#[derive(Default)]
struct Ratios {
    to_system: Vec<f64>,
    to_no_recording: Vec<f64>,
    /// The added time relative to the time that heaptrack adds.
    to_peer: Vec<f64>,
}

impl Bench {
    /// Runs the rounds of one kind of work.
    ///
    /// # Errors
    /// A run fails, or its recording lacks an event.
    fn figures(&self, words: [&str; 2], rounds: usize) -> Result<Vec<Figure>, Failure> {
        let mut ratios = BUILDS.map(|_| Ratios::default());
        let mut of_peer = Vec::new();
        // The first round fills the caches.
        for is_counted in std::iter::once(false).chain(std::iter::repeat_n(true, rounds)) {
            let alone = time(Command::new(&self.system).args(words))?;
            let peer = self.peer.is_ok().then(|| self.peer(words)).transpose()?;
            for (program, ratios) in self.tracked.iter().zip(&mut ratios) {
                let live = time(Command::new(program).args(words).env("DMD", "--mode=live"))?;
                let recorded = self.record(program, words)?;
                if is_counted {
                    ratios.to_system.push(recorded.whole / alone.whole);
                    ratios.to_no_recording.push(recorded.whole / live.whole);
                    let peer = peer.map(|peer| peer.inside - alone.inside);
                    ratios.to_peer.extend(peer.map(|peer| (recorded.whole - alone.whole) / peer));
                }
            }
            of_peer.extend(peer.filter(|_| is_counted).map(|peer| peer.inside / alone.inside));
        }
        let mut figures = Vec::new();
        for (build, ratios) in BUILDS.iter().zip(ratios) {
            figures.push(Figure::new(format!("{build}, to system"), ratios.to_system));
            figures.push(Figure::new(format!("{build}, to no recording"), ratios.to_no_recording));
            figures.push(
                self.of_peer(&format!("{build}, added / heaptrack"), ratios.to_peer)
                    .at_most(PART, "x"),
            );
        }
        figures.push(self.of_peer("heaptrack, to system", of_peer));
        Ok(figures)
    }

    fn of_peer(&self, name: &str, values: Vec<f64>) -> Figure {
        match &self.peer {
            Ok(()) => Figure::new(name, values),
            Err(why) => Figure::not_run(name, why),
        }
    }

    /// Times a run under heaptrack.
    fn peer(&self, words: [&str; 2]) -> Result<Times, Failure> {
        let mut command = Command::new("heaptrack");
        command.args(["--raw", "--output"]).arg(&self.files.record);
        time(command.arg(&self.system).args(words))
    }

    /// Times a recorded run, and checks that the recording has every event.
    fn record(&self, program: &Path, words: [&str; 2]) -> Result<Times, Failure> {
        let folder = self.recording.with_extension("d");
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(program);
        command.env("DMD", "--mode=live").env("MEMREPORT_RECORD", folder.join("r.%p.gz"));
        let times = time(command.args(words))?;
        let file = std::fs::read_dir(&folder)?.next().ok_or("there is no recording")??;
        std::fs::rename(file.path(), &self.recording)?;
        let mut show = Command::new(&self.about_memory);
        let output = show.arg("recording").arg(&self.recording).arg("--json").output()?;
        let shown: Value = serde_json::from_slice(&output.stdout)?;
        if shown["lost"] == 0 && output.status.success() {
            return Ok(times);
        }
        let notes = String::from_utf8_lossy(&output.stderr);
        Err(format!("events of a recording are lost: {}\n{notes}", shown["lost"]).into())
    }
}

/// Times a run of the work. The program prints the nanoseconds of its work.
fn time(command: &mut Command) -> Result<Times, Failure> {
    let begin = Instant::now();
    let output = command.stdin(Stdio::null()).env_remove("MEMREPORT_SAVE").output()?;
    let whole = begin.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let inside = wall(&text).ok_or_else(|| format!("it printed no times, but {text:?}"))?;
    Ok(Times { whole, inside: inside / 1e9 })
}
