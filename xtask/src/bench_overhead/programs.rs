//! The programs that are timed, built, and the files that they read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use memreport_workload::{Numbers, write_text};

use super::rounds::Effort;
use super::variants::{Kind, Program};
use crate::{Failure, build};

/// What was built; a peer that could not be is there with the reason.
pub(crate) struct Programs {
    workload: BTreeMap<Program, Result<PathBuf, String>>,
    fulltext: BTreeMap<Program, PathBuf>,
    pub(crate) dump: PathBuf,
}

impl Programs {
    /// Builds with flags of its own, so that none of the caller's gets in. What has frame pointers is built as all of the
    /// workspace is, and where.
    pub(crate) fn build(out: &mut dyn Write) -> Result<Self, Failure> {
        writeln!(out, "building the programs; the first time takes minutes")?;
        out.flush()?;
        let target = build::target()?;
        let bench = target.join("bench");
        let ours = |folder: &Path, flags: &str, program: &str| {
            let mut cargo = build::cargo();
            cargo.args(["build", "--quiet", "--release", "--package", "memreport-tests"]);
            cargo.arg("--target-dir").arg(folder).env("RUSTFLAGS", flags);
            build::executable(&mut cargo, program)
        };
        let plain = |program| ours(&bench.join("plain"), "-Cforce-frame-pointers=no", program);
        let framed = |program| ours(&target, "-Cforce-frame-pointers=yes", program);
        let peer = |program: &str| {
            let mut cargo = build::cargo();
            cargo.args(["build", "--quiet", "--release", "--locked"]);
            cargo.arg("--manifest-path").arg(build::root().join("xtask/peers/Cargo.toml"));
            cargo.arg("--target-dir").arg(bench.join("peers"));
            cargo.env("RUSTFLAGS", "-Cforce-frame-pointers=no");
            build::executable(&mut cargo, program).map_err(|error| error.to_string())
        };
        let system = plain("workload-system")?;
        let workload = BTreeMap::from([
            (Program::System, Ok(system.clone())),
            (Program::Dmd, Ok(plain("workload-dmd")?)),
            (Program::FramePointers, Ok(framed("workload-dmd")?)),
            (Program::Heaptrack, heaptrack().map(|()| system)),
            (Program::Dhat, peer("dhat")),
            (Program::Jemalloc, peer("jemalloc")),
            (Program::Servo, peer("servo")),
        ]);
        let fulltext = BTreeMap::from([
            (Program::System, plain("fulltext-system")?),
            (Program::Dmd, plain("fulltext")?),
            (Program::FramePointers, framed("fulltext")?),
        ]);
        Ok(Programs { workload, fulltext, dump: plain("workload-dump")? })
    }

    /// Where the program is that does this work; `None` if none does.
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

fn heaptrack() -> Result<(), String> {
    let found = Command::new("heaptrack").arg("--version").output();
    found.map(|_| ()).map_err(|_| "heaptrack is not installed".to_owned())
}

/// What the work reads.
pub(crate) struct Files {
    /// For all of the work, and for a tenth.
    pub(crate) json: [PathBuf; 2],
    pub(crate) texts: PathBuf,
    pub(crate) configuration: PathBuf,
    /// For what peers record.
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

/// Files of words, a few of them common and most of them rare, as in texts that people write.
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

/// A word for a number.
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
