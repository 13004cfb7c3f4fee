//! The programs that are timed, and the files that they read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use memreport_workload::{Numbers, write_text};

use super::rounds::Effort;
use super::variants::{Kind, Program};
use crate::build;
use crate::failure::Failure;

/// The built programs. A peer that could not be built has the reason instead.
pub(crate) struct Programs {
    workload: BTreeMap<Program, Result<PathBuf, String>>,
    fulltext: BTreeMap<Program, PathBuf>,
    pub(crate) dump: PathBuf,
}

impl Programs {
    /// Builds all programs that are missing.
    pub(crate) fn build(out: &mut dyn Write) -> Result<Self, Failure> {
        writeln!(out, "building the programs; the first time takes minutes\n")?;
        out.flush()?;
        let (plain, framed) = (Builder::plain()?, Builder::framed()?);
        let peers = Builder { target: build::target()?.join("bench/peers"), ..plain };
        let framed_peers = Builder { target: build::target()?.join("bench/heapscope"), ..framed };
        let system = plain.ours("workload-system", &[])?;
        let over = |program, allocator| {
            let built = plain.ours(program, &["--features", allocator]);
            built.map_err(|error| error.to_string())
        };
        let jemalloc = over("workload-jemalloc", "jemalloc");
        let profiler = peers.peer("jemalloc");
        let workload = BTreeMap::from([
            (Program::System, Ok(system.clone())),
            (Program::Idle(900), Ok(system.clone())),
            (Program::Idle(1250), Ok(system.clone())),
            (Program::Jemalloc, jemalloc.clone()),
            (Program::IdleJemalloc(1250), jemalloc),
            (Program::Mimalloc, over("workload-mimalloc", "mimalloc")),
            (Program::Snmalloc, over("workload-snmalloc", "snmalloc")),
            (Program::Dmd, Ok(plain.ours("workload-dmd", &[])?)),
            (Program::FramePointers, Ok(framed.ours("workload-dmd", &[])?)),
            (Program::DmdJemalloc, over("workload-dmd-jemalloc", "jemalloc")),
            (Program::DmdMimalloc, over("workload-dmd-mimalloc", "mimalloc")),
            (Program::DmdSnmalloc, over("workload-dmd-snmalloc", "snmalloc")),
            (Program::Heaptrack, heaptrack().map(|()| system)),
            (Program::Dhat, peers.peer("dhat")),
            (Program::JemallocProfiler, profiler.clone()),
            (Program::JemallocWithProfiler, profiler),
            (Program::Servo, peers.peer("servo")),
            (Program::Heapscope, framed_peers.heapscope()),
        ]);
        let fulltext = BTreeMap::from([
            (Program::System, plain.ours("fulltext-system", &[])?),
            (Program::Dmd, plain.ours("fulltext", &[])?),
            (Program::FramePointers, framed.ours("fulltext", &[])?),
        ]);
        Ok(Programs { workload, fulltext, dump: plain.ours("workload-dump", &[])? })
    }

    /// Returns the program for a kind of work; `None` if there is none.
    pub(crate) fn of(&self, program: Program, kind: Kind) -> Option<Result<&Path, String>> {
        match kind {
            Kind::Fulltext => self.fulltext.get(&program).map(|path| Ok(path.as_path())),
            _ => Some(match self.workload.get(&program)? {
                Ok(path) => Ok(path.as_path()),
                Err(why) => Err(why.clone()),
            }),
        }
    }
}

/// A build with its own `RUSTFLAGS`, which replace the caller's.
///
/// Programs with frame pointers share the flags and the target folder of the workspace.
pub(crate) struct Builder {
    target: PathBuf,
    flags: &'static str,
}

impl Builder {
    /// Returns cargo's default build, without frame pointers.
    pub(crate) fn plain() -> Result<Self, Failure> {
        let target = build::target()?.join("bench/plain");
        Ok(Builder { target, flags: "-Cforce-frame-pointers=no" })
    }

    /// Returns a build with frame pointers.
    pub(crate) fn framed() -> Result<Self, Failure> {
        Ok(Builder { target: build::target()?, flags: "-Cforce-frame-pointers=yes" })
    }

    pub(crate) fn ours(&self, program: &str, features: &[&str]) -> Result<PathBuf, Failure> {
        let mut cargo = build::cargo();
        cargo.args(["build", "--quiet", "--release", "--package", "memreport-tests"]);
        cargo.args(features).arg("--target-dir").arg(&self.target).env("RUSTFLAGS", self.flags);
        build::executable(&mut cargo, program)
    }

    /// Builds a peer. Without a network there are no peers, and the other figures remain.
    fn peer(&self, program: &str) -> Result<PathBuf, String> {
        self.peer_of("peers", program, build::cargo())
    }

    /// Builds the peer that needs a newer Rust than this workspace.
    fn heapscope(&self) -> Result<PathBuf, String> {
        self.peer_of("peers-heapscope", "heapscope", build::nightly(&["cargo"]))
    }

    fn peer_of(&self, package: &str, program: &str, mut cargo: Command) -> Result<PathBuf, String> {
        let manifest = build::root().join("xtask").join(package).join("Cargo.toml");
        cargo.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]).arg(manifest);
        cargo.arg("--target-dir").arg(&self.target).env("RUSTFLAGS", self.flags);
        build::executable(&mut cargo, program).map_err(|error| error.to_string())
    }
}

/// Returns the reason why heaptrack cannot run, if there is one.
pub(crate) fn heaptrack() -> Result<(), String> {
    let found = Command::new("heaptrack").arg("--version").output();
    found.map(|_| ()).map_err(|_| "heaptrack is not installed".to_owned())
}

/// The files that the programs read.
pub(crate) struct Files {
    /// The full text, and a tenth of it.
    pub(crate) json: [PathBuf; 2],
    pub(crate) texts: PathBuf,
    pub(crate) configuration: PathBuf,
    /// The output file of recording peers.
    pub(crate) record: PathBuf,
}

impl Files {
    pub(crate) fn write(folder: &Path, effort: Effort) -> io::Result<Self> {
        let json = ["all.json", "tenth.json"].map(|name| folder.join(name));
        for (path, bytes) in json.iter().zip([effort.json_bytes, effort.json_bytes / 10]) {
            let mut file = BufWriter::new(File::create(path)?);
            write_text(bytes, &mut file)?;
            file.flush()?;
        }
        let texts = folder.join("texts");
        write_texts(&texts, effort.texts)?;
        let configuration = folder.join("fulltext.json");
        fs::write(&configuration, r#"{ "workers": 1 }"#)?;
        Ok(Files { json, texts, configuration, record: folder.join("heaptrack") })
    }
}

/// Writes files of words, a few of them common and most of them rare, as in natural text.
fn write_texts(folder: &Path, count: u64) -> io::Result<()> {
    const VOCABULARY: u64 = 40_000;
    fs::create_dir_all(folder)?;
    let mut numbers = Numbers::new(11);
    for number in 0..count {
        let mut file = BufWriter::new(File::create(folder.join(format!("{number}.txt")))?);
        for word in 1..4000 {
            let rank = numbers.below(VOCABULARY) * numbers.below(VOCABULARY) / VOCABULARY;
            let end = if word % 12 == 0 { "\n" } else { " " };
            write!(file, "{}{end}", letters(rank))?;
        }
        file.flush()?;
    }
    Ok(())
}

/// Returns the word for a number.
fn letters(mut number: u64) -> String {
    let mut word = String::new();
    loop {
        word.push_str(["ka", "lo", "mi", "ter", "su", "an", "ve", "ri"][(number % 8) as usize]);
        number /= 8;
        if number == 0 {
            return word;
        }
    }
}
