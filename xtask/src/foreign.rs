//! `cargo xtask foreign [PROGRAM] [--quick]`: figures of programs around libraries of crates.io,
//! beside the truth.
//!
//! The truth comes from a counting allocator below DMD, glibc's `mallinfo2`, and the kernel. It
//! changes while a command works, so it is a range: from the lowest to the highest value during
//! the command. Each program is built for dev and release, tracked from the start, late, and not
//! at all, and asked while it works and while it pauses. A figure outside its range fails.
//! `--quick` leaves the release builds out.

mod c_libraries;
mod collecting;
mod costs;
mod figures;
mod production;
mod published;
mod server;
mod stories;
mod subject;
pub(crate) mod tasks;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::figures::Figure;
use self::subject::{Subject, Tracking};
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The programs of `xtask/foreign` that work in rounds, each with the feature for its library.
const PROGRAMS: [(&str, &str); 3] =
    [("runtime", "boa_engine"), ("search", "tantivy"), ("service", "axum")];

/// The tools that the figures come from, and a folder for their files.
struct Bench {
    about_memory: PathBuf,
    scratch: Scratch,
}

impl Bench {
    fn new() -> Result<Self, Failure> {
        let about_memory = build::release("about-memory", "about-memory")?;
        Ok(Bench { about_memory, scratch: Scratch::new()? })
    }

    fn about_memory(&self) -> Command {
        let mut command = Command::new(&self.about_memory);
        command.current_dir(&self.scratch.0);
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.0.join(name)
    }
}

/// Runs the check. Returns `false` when a figure is wrong.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    if let ["stories", wanted @ ..] = args {
        return stories::run(wanted, &Bench::new()?, out);
    }
    if let ["production", minutes @ ..] = args {
        return production::run(minutes, &Bench::new()?, out);
    }
    if let ["collecting", wanted @ ..] = args {
        return collecting::run(wanted, &Bench::new()?, out);
    }
    if let ["costs", wanted @ ..] = args {
        return costs::run(wanted, &Bench::new()?, out);
    }
    if let ["c-libraries", wanted @ ..] = args {
        return match wanted {
            [] | ["--quick"] => c_libraries::run(!wanted.is_empty(), &Bench::new()?, out),
            _ => Err(format!("`c-libraries` takes `--quick`, not {wanted:?}").into()),
        };
    }
    let is_quick = args.contains(&"--quick");
    let wanted: Vec<&str> = args.iter().copied().filter(|arg| *arg != "--quick").collect();
    let names = PROGRAMS.map(|(name, _)| name);
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        return Err(format!("no program `{unknown}`; there are {}", names.join(", ")).into());
    }
    let bench = Bench::new()?;
    let (mut count, mut wrong) = (0, 0);
    let mut check = |title: &str, figures: Vec<Figure>, out: &mut dyn Write| {
        count += figures.len();
        wrong += figures::write(title, &figures, out)?;
        Ok::<_, Failure>(())
    };
    for (name, feature) in PROGRAMS {
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let profiles: &[bool] = if is_quick { &[false] } else { &[false, true] };
        for is_release in profiles {
            let program = program(name, feature, *is_release)?;
            let profile = if *is_release { "release" } else { "dev" };
            for tracking in [Tracking::FromStart, Tracking::Late, Tracking::Never] {
                let mut subject = Subject::start(&program, tracking, &bench)?;
                let title = format!("{name}, {profile}, {tracking}, busy");
                check(&title, figures::of_running(&bench, &mut subject)?, out)?;
                subject.pause()?;
                let title = format!("{name}, {profile}, {tracking}, paused");
                check(&title, figures::of_running(&bench, &mut subject)?, out)?;
                subject.end()?;
            }
            let title = format!("{name}, {profile}, to its end");
            check(&title, figures::of_whole_runs(&bench, &program)?, out)?;
        }
    }
    writeln!(out, "{count} figures, {wrong} of them wrong")?;
    Ok(wrong == 0)
}

/// Returns the number that follows an option: at least 1.
fn number_after<'a>(
    option: &str,
    mut words: impl Iterator<Item = &'a &'a str>,
) -> Result<usize, Failure> {
    let number = words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{option}` takes a number from 1").into())
}

/// Builds a program and returns its path.
fn program(name: &str, feature: &str, is_release: bool) -> Result<PathBuf, Failure> {
    let mut build = build::cargo();
    build.args(["build", "--features", feature, "--manifest-path"]);
    build.arg(folder().join("Cargo.toml"));
    build.args(is_release.then_some("--release"));
    build::executable(&mut build, name)
}

/// Returns the folder of the programs.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign")
}
