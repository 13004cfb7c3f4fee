//! Rounds: each variant runs once, and is compared with its allocator alone in the same round.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::programs::{Files, Programs};
use super::variants::{HEAPTRACK, Kind, Program, Size, VARIANTS, Variant, Work};
use crate::bench::figure::Figure;
use crate::bench::process::{self, Times};
use crate::failure::Failure;

/// The amount of work and the number of rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    rounds: usize,
    /// Rounds for small ratios.
    fine_rounds: usize,
    /// Replaced blocks.
    operations: u64,
    maps: u64,
    pub(crate) json_bytes: usize,
    pub(crate) texts: u64,
    /// Runs of figures that are not times, or that hardly vary.
    pub(crate) few: usize,
}

impl Effort {
    pub(crate) const FULL: Effort = Effort {
        rounds: 7,
        fine_rounds: 31,
        operations: 3_000_000,
        maps: 100,
        json_bytes: 50_000_000,
        texts: 400,
        few: 5,
    };
    pub(crate) const QUICK: Effort = Effort {
        rounds: 3,
        fine_rounds: 5,
        operations: 600_000,
        maps: 20,
        json_bytes: 10_000_000,
        texts: 100,
        few: 1,
    };

    /// Returns it with at most this many rounds.
    pub(crate) fn with_rounds(self, rounds: usize) -> Effort {
        let most = |now: usize| now.min(rounds.max(1));
        Effort { rounds: most(self.rounds), fine_rounds: most(self.fine_rounds), ..self }
    }

    fn rounds(self, variant: &Variant) -> usize {
        if variant.size == Size::Fine { self.fine_rounds } else { self.rounds }
    }
}

/// The runs of one variant in the order of the rounds, or the reason that it did not run.
pub(crate) struct OfVariant {
    pub(crate) variant: &'static Variant,
    outcome: Result<Vec<Pair>, String>,
}

/// The runs of a variant and of its base in one round.
struct Pair {
    own: Times,
    base: Times,
}

impl OfVariant {
    /// Returns the ratios to the base.
    pub(crate) fn ratios(&self, by_wall: bool) -> Result<Vec<f64>, String> {
        let runs = self.outcome.as_ref().map_err(Clone::clone)?;
        let time = |times: Times| if by_wall { times.wall } else { times.processor };
        Ok(runs.iter().map(|Pair { own, base }| time(*own) / time(*base)).collect())
    }

    pub(crate) fn figure(&self, work: &Work) -> Figure {
        let by_wall = work.is_wall || self.variant.name == HEAPTRACK;
        let target = self.variant.targets.map(|targets| targets[work.target]);
        let name = self.variant.name;
        match self.ratios(by_wall) {
            Ok(ratios) => Figure::new(name, ratios),
            Err(why) => Figure::not_run(name, why),
        }
        .at_most(target, "x")
    }
}

/// Runs all wanted variants in turn. Of variants that do not do this work it does not ask.
pub(crate) fn run(
    work: &Work,
    effort: Effort,
    (programs, files): (&Programs, &Files),
    wanted: &dyn Fn(&Variant) -> bool,
) -> Result<Vec<OfVariant>, Failure> {
    let time = |program, variable, size| {
        let run = Run { program, variable, is_tenth: size == Size::Tenth };
        run.time((work.kind, effort), (programs, files))
    };
    let mut all: Vec<OfVariant> = VARIANTS
        .iter()
        .filter(|variant| variant.does(work.kind))
        .filter(|variant| programs.of(variant.program, work.kind).is_some())
        .filter(|variant| wanted(variant))
        .map(|variant| OfVariant { variant, outcome: Ok(Vec::new()) })
        .collect();
    let rounds = all.iter().map(|of_variant| effort.rounds(of_variant.variant)).max();
    for round in 0..rounds.unwrap_or(0) {
        // A base runs once in a round for each amount of work.
        let mut bases = BTreeMap::new();
        for place in order(all.len(), round) {
            let OfVariant { variant, outcome } = &mut all[place];
            let Ok(runs) = outcome else { continue };
            if round >= effort.rounds(variant) {
                continue;
            }
            let (base, size) = (variant.base(), variant.size);
            let base =
                bases.entry((base, size == Size::Tenth)).or_insert_with(|| time(base, None, size));
            let pair = base.clone().and_then(|base| {
                Ok(Pair { own: time(variant.program, variant.variable, size)?, base })
            });
            match pair {
                Ok(pair) => runs.push(pair),
                Err(why) => *outcome = Err(why),
            }
        }
    }
    Ok(all)
}

/// Returns the places of a round's variants. Each round has another order: how long the kernel
/// takes for fresh pages depends on what ran before.
fn order(count: usize, round: usize) -> impl Iterator<Item = usize> {
    let is_backwards = round % 2 == 1;
    (0..count).map(move |at| {
        let at = if is_backwards { count - 1 - at } else { at };
        (at + round * 7) % count
    })
}

/// A run of a program.
struct Run {
    program: Program,
    variable: Option<(&'static str, &'static str)>,
    /// A tenth of the work.
    is_tenth: bool,
}

impl Run {
    /// Times it. The error is the program's own message.
    fn time(
        &self,
        (kind, effort): (Kind, Effort),
        (programs, files): (&Programs, &Files),
    ) -> Result<Times, String> {
        let path = programs.of(self.program, kind).ok_or("there is no such program")??;
        let mut command = command(self.program, path, files);
        let part = |all: u64| if self.is_tenth { all / 10 } else { all };
        match kind {
            Kind::Churn(threads) => {
                // Each of many threads sees all stacks, for the first time, in its own share.
                let operations = part(effort.operations) * (threads as u64 / 8).max(1);
                command.args(self.program.churn());
                command.args([operations.to_string(), threads.to_string()])
            }
            Kind::ChurnLike64 => {
                command.args(self.program.churn());
                // 64 threads have 200,000 blocks, and 512 paths each.
                let [live, paths] = [200_000 / 32, 512 * 32];
                let operations = part(effort.operations) * 8;
                command.args([operations.to_string(), "2".to_owned()]);
                command.args([live.to_string(), paths.to_string()])
            }
            Kind::Json => command.arg("json").arg(&files.json[usize::from(self.is_tenth)]),
            Kind::Maps => command.args(["maps", &part(effort.maps).to_string()]),
            Kind::Fulltext => command
                .args(["--no-snapshot", "--configuration"])
                .args([&files.configuration, &files.texts]),
        };
        command.env_remove("DMD").envs(self.variable);
        if !matches!(kind, Kind::Churn(_) | Kind::ChurnLike64) {
            touch_memory();
        }
        let (times, output) = process::time(&mut command)?;
        if kind == Kind::Fulltext {
            return Ok(times);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        times_in(&text).ok_or_else(|| format!("it printed no times, but {text:?}"))
    }
}

/// Writes to more memory than the programs take, and frees it. The host of a virtual machine takes
/// back what nobody uses, and a program that is the first to need more than the one before it would
/// wait until the host returns it: four times as long as it needs itself.
fn touch_memory() {
    const BYTES: usize = 2 << 30;
    std::hint::black_box(vec![1_u8; BYTES]);
}

/// Returns the wall time, in nanoseconds, that a program of the workload has printed.
pub(crate) fn wall(text: &str) -> Option<f64> {
    times_in(text).map(|times| times.wall)
}

/// Returns the two numbers of the line that holds nothing else.
fn times_in(text: &str) -> Option<Times> {
    text.lines().find_map(|line| {
        let (processor, wall) = line.split_once(' ')?;
        Some(Times { processor: processor.parse().ok()?, wall: wall.parse().ok()? })
    })
}

fn command(program: Program, path: &Path, files: &Files) -> Command {
    let mut command = match program {
        Program::Heaptrack => {
            let mut command = Command::new("heaptrack");
            command.args(["--raw", "--output"]).arg(&files.record).arg(path);
            command
        }
        _ => Command::new(path),
    };
    // heapscope leaves a file in the working directory.
    if let Some(folder) = files.record.parent() {
        command.current_dir(folder);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn each_round_has_every_variant_in_another_order() {
        for count in [1, 7, 27] {
            let mut before = Vec::new();
            for round in 0..6 {
                let places: Vec<_> = order(count, round).collect();
                assert!(count < 3 || places != before, "{count} {round}");
                let mut sorted = places.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..count), "{places:?}");
                before = places;
            }
        }
    }
}
