//! `cargo xtask foreign costs [PROGRAM] [--rounds N] [--dev]`: the price of DMD for programs of
//! crates.io that run to their end, over the system's allocator and jemalloc.
//!
//! Each program is a copy whose only change is the allocator that the guide asks for. A round runs
//! each variant once, and a ratio compares two runs of one round. Instructions are counted by
//! valgrind, in a smaller run.

mod work;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use self::work::{WORKS, Work};
use super::published::Allocator;
use super::{Bench, number_after};
use crate::bench::figure::{Figure, lines, table};
use crate::bench::process::{self, Times};
use crate::failure::Failure;
use crate::on_path;

const ROUNDS: usize = 15;

/// A way to run a program.
struct Variant {
    name: &'static str,
    allocator: Allocator,
    variable: Option<(&'static str, &'static str)>,
    /// The largest ratio to the same allocator alone.
    target: Option<f64>,
}

const PROFILE: Option<(&str, &str)> = Some(("DMD", "--mode=profile"));
const NO_STACKS: Option<(&str, &str)> = Some(("DMD", "--stacks=none"));
const FULL_STACKS: Option<(&str, &str)> = Some(("DMD", "--stacks=full"));

const VARIANTS: [Variant; 10] = [
    Variant::new("asleep", Allocator::SystemDmd, None, 1.05),
    Variant::new("profile", Allocator::SystemDmd, PROFILE, 1.06),
    Variant::new("no stacks", Allocator::SystemDmd, NO_STACKS, 1.25),
    Variant::new("full stacks, frame pointers", Allocator::SystemDmdFramed, FULL_STACKS, 1.2),
    Variant::new("full stacks, unwind tables", Allocator::SystemDmd, FULL_STACKS, 1.5),
    Variant::new("jemalloc: asleep", Allocator::JemallocDmd, None, 1.05),
    Variant::new("jemalloc: profile", Allocator::JemallocDmd, PROFILE, 1.14),
    Variant::new("jemalloc: no stacks", Allocator::JemallocDmd, NO_STACKS, 1.4),
    Variant::new("jemalloc: full stacks", Allocator::JemallocDmd, FULL_STACKS, 2.2),
    Variant {
        name: "jemalloc's profiler at 512 KiB",
        allocator: Allocator::JemallocProfiler,
        variable: Some(("_RJEM_MALLOC_CONF", "prof:true,lg_prof_sample:19")),
        target: None,
    },
];

const HEAPTRACK: &str = "heaptrack, recording (wall)";

impl Variant {
    const fn new(
        name: &'static str,
        allocator: Allocator,
        variable: Option<(&'static str, &'static str)>,
        target: f64,
    ) -> Self {
        Self { name, allocator, variable, target: Some(target) }
    }

    /// Returns the same allocator alone.
    fn base(&self) -> Allocator {
        match self.allocator {
            Allocator::System | Allocator::SystemDmd | Allocator::SystemDmdFramed => {
                Allocator::System
            }
            Allocator::Jemalloc | Allocator::JemallocDmd | Allocator::JemallocProfiler => {
                Allocator::Jemalloc
            }
        }
    }
}

/// Runs the measurement. Returns `false` if a target is missed.
pub(super) fn run(args: &[&str], bench: &Bench, out: &mut dyn Write) -> Result<bool, Failure> {
    let (mut rounds, mut is_dev, mut wanted) = (ROUNDS, false, Vec::new());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match *word {
            "--dev" => is_dev = true,
            "--rounds" => rounds = number_after("--rounds", &mut words)?,
            name if WORKS.iter().any(|work| work.published.program == name) => wanted.push(name),
            name => {
                let names = WORKS.map(|work| work.published.program).join(", ");
                return Err(format!("no program `{name}`; there are {names}").into());
            }
        }
    }
    let mut all = Vec::new();
    for work in &WORKS {
        let name = work.published.program;
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let programs = Programs::build(work, is_dev, bench)?;
        let build = if is_dev { "dev" } else { "release" };
        let title = format!("{name} {} ({build})", work.published.version);
        let figures = programs.times(rounds)?;
        table(&format!("{title}, cpu"), &figures, out)?;
        out.flush()?;
        let counts = programs.instructions();
        table(&format!("{title}, instructions"), &counts, out)?;
        for (unit, figures) in [("cpu", figures), ("instructions", counts)] {
            all.extend(figures.into_iter().map(|figure| {
                let name = format!("{title}, {unit}: {}", figure.name);
                Figure { name, ..figure }
            }));
        }
    }
    Ok(lines(&all, out)?)
}

/// The builds of a program, and its inputs.
struct Programs<'a> {
    work: &'a Work,
    paths: BTreeMap<Allocator, PathBuf>,
    input: PathBuf,
    /// A tenth of the work.
    small_input: PathBuf,
    recording: PathBuf,
}

impl<'a> Programs<'a> {
    fn build(work: &'a Work, is_dev: bool, bench: &Bench) -> Result<Self, Failure> {
        let copy = work.published.prepare(bench)?;
        let mut paths = BTreeMap::new();
        for variant in &VARIANTS {
            for allocator in [variant.base(), variant.allocator] {
                paths.insert(allocator, copy.build(allocator, is_dev)?);
            }
        }
        let name = work.published.program;
        let [input, small_input] =
            ["input", "small-input"].map(|kind| bench.file(&format!("{name}-{kind}")));
        std::fs::write(&input, (work.input)(10))?;
        std::fs::write(&small_input, (work.input)(1))?;
        let recording = bench.file("heaptrack");
        Ok(Self { work, paths, input, small_input, recording })
    }

    /// Returns the ratios of processor times.
    fn times(&self, rounds: usize) -> Result<Vec<Figure>, Failure> {
        let mut ratios: [Vec<f64>; VARIANTS.len()] = Default::default();
        let mut heaptrack = on_path::find(&["heaptrack"], "heaptrack").map(|_| Vec::new());
        for _ in 0..rounds {
            let mut bases = BTreeMap::new();
            for base in [Allocator::System, Allocator::Jemalloc] {
                bases.insert(base, self.time(base, None)?);
            }
            for (variant, ratios) in VARIANTS.iter().zip(&mut ratios) {
                let own = self.time(variant.allocator, variant.variable)?;
                ratios.push(own.processor / bases[&variant.base()].processor);
            }
            // The other figures remain if it fails.
            if let Ok(ratios) = &mut heaptrack {
                match self.time_with_heaptrack() {
                    Ok(own) => ratios.push(own.wall / bases[&Allocator::System].wall),
                    Err(why) => heaptrack = Err(why),
                }
            }
        }
        let mut figures: Vec<Figure> = VARIANTS
            .iter()
            .zip(ratios)
            .map(|(variant, ratios)| Figure::new(variant.name, ratios).at_most(variant.target, "x"))
            .collect();
        figures.push(match heaptrack {
            Ok(ratios) => Figure::new(HEAPTRACK, ratios),
            Err(why) => Figure::not_run(HEAPTRACK, why),
        });
        Ok(figures)
    }

    fn time(&self, allocator: Allocator, variable: Option<(&str, &str)>) -> Result<Times, String> {
        let mut command = Command::new(&self.paths[&allocator]);
        command.args(self.work.args).arg(&self.input).env_remove("DMD").envs(variable);
        Ok(process::time(&mut command)?.0)
    }

    fn time_with_heaptrack(&self) -> Result<Times, String> {
        let mut command = Command::new("heaptrack");
        command.args(["--raw", "--output"]).arg(&self.recording);
        command.arg(&self.paths[&Allocator::System]).args(self.work.args).arg(&self.input);
        Ok(process::time(&mut command)?.0)
    }

    /// Returns the ratios of instructions.
    fn instructions(&self) -> Vec<Figure> {
        let count = |allocator, variable: Option<(&str, &str)>| {
            process::instructions(&self.paths[&allocator], |command| {
                command.args(self.work.args).arg(&self.small_input);
                command.env_remove("DMD").envs(variable);
            })
        };
        let mut bases = BTreeMap::new();
        let figures = VARIANTS.iter().map(|variant| {
            let base = variant.base();
            let base = bases.entry(base).or_insert_with(|| count(base, None)).clone();
            match base.and_then(|base| Ok(count(variant.allocator, variant.variable)? / base)) {
                Ok(ratio) => Figure::new(variant.name, vec![ratio]),
                Err(why) => Figure::not_run(variant.name, why),
            }
        });
        figures.collect()
    }
}
