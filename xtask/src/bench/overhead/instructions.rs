//! Instructions per replaced block, counted by valgrind, and over snmalloc by qemu: figures without
//! noise, though not times.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use super::programs::Programs;
use super::rounds::Effort;
use super::variants::{
    DHAT_10, FULL, HEAPSCOPE, IDLE, JEMALLOC_FULL, JEMALLOC_PROFILES, Kind, MOST_TO_TWO_THREADS,
    Program, SERVO, VARIANTS, Variant,
};
use crate::bench::figure::Figure;
use crate::bench::process;
use crate::failure::Failure;

/// The number of replaced blocks. The start and the filling of the heap are counted apart and
/// subtracted.
const OPERATIONS: u32 = 20_000;

/// The number of replaced blocks after which further ones are counted apart: no stack is new then.
const KNOWN: u32 = 100_000;

/// The number of live blocks. Few, since caches do not matter here and valgrind is slow.
const LIVE: &str = "5000";

/// The number of blocks that each of several threads replaces before further ones are counted. With
/// 64 threads the cache of stacks has grown by then.
const KNOWN_OF_THREAD: u32 = 40_000;

/// The number of blocks of each of several threads that are counted. Many, since threads that take
/// turns in another order have other counts before.
const COUNTED_OF_THREAD: u32 = 50_000;

/// Without this jemalloc empties its caches and gives pages back by the clock, and no two counts
/// are the same.
const WITHOUT_CLOCK: (&str, &str) =
    ("_RJEM_MALLOC_CONF", "experimental_tcache_gc:false,dirty_decay_ms:-1,muzzy_decay_ms:-1");

/// The variants that are counted, and the most instructions that each may add. heaptrack is not:
/// its library is preloaded, and valgrind replaces the functions that it wraps.
const COUNTED: [(&str, Option<f64>); 24] = [
    ("asleep", Some(40.0)),
    ("profile at 512 KiB", Some(70.0)),
    ("no stacks", Some(120.0)),
    (FULL[0], Some(900.0)),
    (FULL[1], Some(1300.0)),
    (IDLE[0], None),
    (IDLE[1], None),
    ("partial stacks", None),
    ("jemalloc: asleep", Some(40.0)),
    (JEMALLOC_PROFILES[0], Some(70.0)),
    ("jemalloc: no stacks", Some(120.0)),
    (JEMALLOC_FULL, Some(1300.0)),
    ("mimalloc: asleep", Some(40.0)),
    ("mimalloc: profile at 512 KiB", Some(70.0)),
    ("mimalloc: no stacks", Some(120.0)),
    ("mimalloc: full stacks", Some(1300.0)),
    ("snmalloc: asleep", Some(40.0)),
    ("snmalloc: profile at 512 KiB", Some(70.0)),
    ("snmalloc: no stacks", Some(120.0)),
    ("snmalloc: full stacks", Some(1300.0)),
    (JEMALLOC_PROFILES[1], None),
    (HEAPSCOPE, None),
    (DHAT_10, None),
    (SERVO, None),
];

/// Variants that are counted beside what might make them slower, and the most instructions that
/// each may add: blocks whose sizes allocators look up, and more threads than a process mostly has.
/// Of two threads both begin after those; a single one would be the process's first.
const BESIDE: [(&str, Load, &str, f64); 4] = [
    ("no stacks", Load::beside("blocks", 1), "blocks of unusual sizes", 120.0),
    ("jemalloc: no stacks", Load::beside("blocks", 1), "blocks of unusual sizes", 120.0),
    ("asleep", Load::beside("400", 2), "400 threads", 40.0),
    ("no stacks", Load::beside("400", 2), "400 threads", 120.0),
];

pub(crate) fn measure(programs: &Programs, _effort: Effort) -> Result<Vec<Figure>, Failure> {
    let mut bases = BTreeMap::new();
    let mut figures = Vec::new();
    for (name, target) in COUNTED {
        let Some(variant) = VARIANTS.iter().find(|variant| variant.name == name) else { continue };
        let base = bases.entry(variant.base()).or_insert_with(|| {
            let count = Counted::alone(variant, Load::of(1)).per_operation(programs, 0..OPERATIONS);
            figures.push(figure(format!("{:?} alone", variant.base()), count.clone()));
            count
        });
        let with = Counted::of(variant, Load::of(1)).per_operation(programs, 0..OPERATIONS);
        let added = base.clone().and_then(|base| Ok(with? - base));
        figures.push(figure(format!("{name}, added"), added).at_most(target, ""));
    }
    for variant in VARIANTS.iter().filter(|variant| FULL.contains(&variant.name)) {
        let added = added(programs, variant, Load::of(1), KNOWN..KNOWN + OPERATIONS);
        figures.push(figure(format!("{}, added, all stacks known", variant.name), added));
    }
    for (name, load, what, target) in BESIDE {
        let Some(variant) = VARIANTS.iter().find(|variant| variant.name == name) else { continue };
        let added = added(programs, variant, load, 0..OPERATIONS);
        let name = format!("{name}, added, beside {what}");
        figures.push(figure(name, added).at_most(Some(target), ""));
    }
    let of_threads = ["no stacks", FULL[1]];
    for variant in VARIANTS.iter().filter(|variant| of_threads.contains(&variant.name)) {
        figures.extend(crowded(programs, variant));
    }
    Ok(figures)
}

/// Returns how many times the instructions that 2 threads add for a replaced block 8 and 64 add,
/// once all stacks are known.
fn crowded(programs: &Programs, variant: &Variant) -> [Figure; 2] {
    let of_threads = |threads| {
        let known = KNOWN_OF_THREAD * threads;
        added(programs, variant, Load::of(threads), known..known + COUNTED_OF_THREAD * threads)
    };
    let two = of_threads(2);
    [8, 64].map(|threads| {
        let ratio = two.clone().and_then(|two| Ok(of_threads(threads)? / two));
        figure(format!("{}, added, {threads} threads / on 2", variant.name), ratio)
            .at_most(MOST_TO_TWO_THREADS, "x")
    })
}

/// Returns the instructions that a variant adds to its base for each of these replaced blocks.
fn added(
    programs: &Programs,
    variant: &Variant,
    load: Load,
    operations: Range<u32>,
) -> Result<f64, String> {
    let with = Counted::of(variant, load).per_operation(programs, operations.clone())?;
    Ok(with - Counted::alone(variant, load).per_operation(programs, operations)?)
}

fn figure(name: String, count: Result<f64, String>) -> Figure {
    match count {
        Ok(count) => Figure::new(name, vec![count]).at_most(None, ""),
        Err(why) => Figure::not_run(name, why),
    }
}

/// The threads that replace blocks, and what lives beside them, in the words of the workload's
/// command line.
#[derive(Clone, Copy)]
struct Load {
    threads: u32,
    beside: Option<&'static str>,
}

impl Load {
    fn of(threads: u32) -> Self {
        Load { threads, beside: None }
    }

    const fn beside(what: &'static str, threads: u32) -> Self {
        Load { threads, beside: Some(what) }
    }
}

/// A program whose instructions are counted.
struct Counted {
    program: Program,
    variable: Option<(&'static str, &'static str)>,
    load: Load,
}

impl Counted {
    fn of(variant: &Variant, load: Load) -> Self {
        Counted { program: variant.program, variable: variant.variable, load }
    }

    /// Returns the program that a variant is compared with.
    fn alone(variant: &Variant, load: Load) -> Self {
        Counted { program: variant.base(), variable: None, load }
    }

    /// Returns the number of instructions for each of these replaced blocks.
    fn per_operation(&self, programs: &Programs, operations: Range<u32>) -> Result<f64, String> {
        let path =
            programs.of(self.program, Kind::Churn(1)).ok_or("there is no such program")??;
        let before = self.count(path, operations.start)?;
        let after = self.count(path, operations.end)?;
        Ok((after - before) / f64::from(operations.end - operations.start))
    }

    /// Returns the number of instructions of a whole run.
    fn count(&self, path: &Path, operations: u32) -> Result<f64, String> {
        let prepare = |command: &mut Command| {
            command.args(self.load.beside.iter().flat_map(|what| ["beside", what]));
            command.args(self.program.churn());
            command.args([operations.to_string(), self.load.threads.to_string()]);
            let has_few = self.load.threads == 1 || self.load.beside.is_some();
            command.args(has_few.then_some(LIVE));
            // dhat writes a file where it runs.
            command.current_dir(std::env::temp_dir());
            command.env_remove("DMD").envs([WITHOUT_CLOCK]);
            if let Some((name, value)) = self.variable {
                let (of_clock, without_clock) = WITHOUT_CLOCK;
                let both = format!("{value},{without_clock}");
                command.env(name, if name == of_clock { &both } else { value });
            }
        };
        match self.program {
            // It reserves more addresses than valgrind has.
            Program::Snmalloc | Program::DmdSnmalloc => {
                process::instructions_by_qemu(path, prepare)
            }
            _ => process::instructions(path, prepare),
        }
    }
}
