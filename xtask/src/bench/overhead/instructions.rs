//! Instructions per replaced block, counted by valgrind: a figure without noise, though not a time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::programs::Programs;
use super::rounds::Effort;
use super::variants::{FULL, IDLE, Kind, Program, VARIANTS};
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

/// Without this jemalloc empties its caches and gives pages back by the clock, and no two counts
/// are the same.
const WITHOUT_CLOCK: (&str, &str) =
    ("_RJEM_MALLOC_CONF", "experimental_tcache_gc:false,dirty_decay_ms:-1,muzzy_decay_ms:-1");

/// The variants that are counted, and the most instructions that each may add.
const COUNTED: [(&str, Option<f64>); 16] = [
    ("asleep", Some(40.0)),
    ("profile at 512 KiB", Some(70.0)),
    ("no stacks", Some(120.0)),
    (FULL[0], Some(900.0)),
    (FULL[1], Some(1300.0)),
    (IDLE[0], None),
    (IDLE[1], None),
    ("partial stacks", None),
    ("jemalloc: asleep", Some(40.0)),
    ("jemalloc: profile at 512 KiB", Some(70.0)),
    ("jemalloc: no stacks", Some(120.0)),
    ("jemalloc: full stacks", Some(1300.0)),
    ("mimalloc: asleep", Some(40.0)),
    ("mimalloc: profile at 512 KiB", Some(70.0)),
    ("mimalloc: no stacks", Some(120.0)),
    ("mimalloc: full stacks", Some(1300.0)),
];

pub(crate) fn measure(programs: &Programs, _effort: Effort) -> Result<Vec<Figure>, Failure> {
    let mut bases = BTreeMap::new();
    let mut figures = Vec::new();
    let counted = |name: &str, operations: Range<u32>| {
        let variant = VARIANTS.iter().find(|variant| variant.name == name)?;
        let with = per_operation(programs, variant.program, variant.variable, operations.clone());
        let alone = per_operation(programs, variant.base(), None, operations);
        Some(with.and_then(|with| Ok(with - alone?)))
    };
    for (name, target) in COUNTED {
        let Some(variant) = VARIANTS.iter().find(|variant| variant.name == name) else { continue };
        let base = bases.entry(variant.base()).or_insert_with(|| {
            let count = per_operation(programs, variant.base(), None, 0..OPERATIONS);
            figures.push(figure(format!("{:?} alone", variant.base()), count.clone()));
            count
        });
        let added = base.clone().and_then(|base| {
            let operations = 0..OPERATIONS;
            Ok(per_operation(programs, variant.program, variant.variable, operations)? - base)
        });
        figures.push(figure(format!("{name}, added"), added).at_most(target, ""));
    }
    for name in FULL {
        let added = counted(name, KNOWN..KNOWN + OPERATIONS);
        figures
            .extend(added.map(|added| figure(format!("{name}, added, all stacks known"), added)));
    }
    Ok(figures)
}

fn figure(name: String, count: Result<f64, String>) -> Figure {
    match count {
        Ok(count) => Figure::new(name, vec![count]).at_most(None, ""),
        Err(why) => Figure::not_run(name, why),
    }
}

/// Returns the number of instructions for each of these replaced blocks.
fn per_operation(
    programs: &Programs,
    program: Program,
    variable: Option<(&str, &str)>,
    operations: Range<u32>,
) -> Result<f64, String> {
    let path = programs.of(program, Kind::Churn(1)).ok_or("there is no such program")??;
    let before = count(path, program, variable, operations.start)?;
    let after = count(path, program, variable, operations.end)?;
    Ok((after - before) / f64::from(operations.end - operations.start))
}

/// Returns the number of instructions of a whole run.
fn count(
    path: &Path,
    program: Program,
    variable: Option<(&str, &str)>,
    operations: u32,
) -> Result<f64, String> {
    process::instructions(path, |command| {
        command.args(program.churn()).args([&operations.to_string(), "1", LIVE]);
        command.env_remove("DMD").envs([WITHOUT_CLOCK]).envs(variable);
    })
}
