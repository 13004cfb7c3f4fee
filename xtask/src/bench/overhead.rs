//! The cost of tracking, beside other heap trackers.
//!
//! The same work runs on the system's allocator alone, with DMD in each of its modes, and with its
//! peers. Every run is a process of its own. A round runs each variant once, and a ratio compares
//! two runs of one round, so that changes of the machine's speed affect both.

mod only;
mod variants;
pub(crate) mod programs;
pub(crate) mod rounds;
mod peers;
mod instructions;
mod space;

use std::io::Write;

use self::only::Only;
use self::programs::{Files, Programs};
use self::rounds::{Effort, OfVariant};
use self::variants::{Kind, LIKE_64, MOST_TO_TWO_THREADS, Variant, WORKS, Work};
use crate::bench::figure::{Figure, lines, table};
use crate::failure::Failure;
use crate::scratch::Scratch;

/// Runs `cargo xtask bench overhead [--quick] [--rounds N] [--only WORD|WORD]`. Returns `false`
/// when a target is missed.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let word_behind = |option: &str| match args.iter().position(|word| *word == option) {
        None => Ok(None),
        Some(at) => args.get(at + 1).map(Some).ok_or_else(|| format!("{option} needs a word")),
    };
    let only = Only::new(word_behind("--only")?.copied());
    let effort = if args.contains(&"--quick") { Effort::QUICK } else { Effort::FULL };
    let rounds = word_behind("--rounds")?.map(|rounds| rounds.parse()).transpose()?;
    let effort = rounds.map_or(effort, |rounds| effort.with_rounds(rounds));
    let scratch = Scratch::new()?;
    let programs = Programs::build(out)?;
    let files = Files::write(&scratch.0, effort)?;
    let mut all = Vec::new();
    // The works with which those of more threads are compared, and the times of each.
    let mut before = Vec::new();
    for work in &WORKS {
        let wanted = |variant: &Variant| only.wants(&format!("{}, {}", work.name, variant.name));
        let times = rounds::run(work, effort, (&programs, &files), &wanted)?;
        show(work_figures(work, &times, &before), &mut all, out)?;
        match work.kind {
            Kind::Churn(2) => before.push(("on 2", times)),
            Kind::ChurnLike64 => before.push((LIKE_64, times)),
            _ => {}
        }
    }
    for (title, measure) in APART.into_iter().filter(|_| !only.names_a_work()) {
        let figures = measure(&programs, effort)?;
        let figures =
            figures.into_iter().filter(|figure| only.wants(&format!("{title}, {}", figure.name)));
        show((title.to_owned(), figures.collect()), &mut all, out)?;
    }
    let is_met = lines(&all, out)?;
    only.check(&APART.map(|(title, _)| title))?;
    Ok(is_met)
}

type Section = (String, Vec<Figure>);

type Measure = fn(&Programs, Effort) -> Result<Vec<Figure>, Failure>;

/// The figures that are not times.
const APART: [(&str, Measure); 3] = [
    ("instructions (valgrind)", instructions::measure),
    ("memory for each live block", space::memory),
    ("dump", space::dump),
];

fn work_figures(
    work: &Work,
    times: &[OfVariant],
    before: &[(&'static str, Vec<OfVariant>)],
) -> Section {
    let mut figures: Vec<Figure> = times.iter().map(|of_variant| of_variant.figure(work)).collect();
    figures.extend(peers::figures(work, times));
    if work.kind.is_crowded() {
        for (name, before) in before {
            figures.extend(times.iter().map(|of_variant| crowded(of_variant, (*name, before))));
        }
    }
    (format!("{} ({})", work.name, if work.is_wall { "wall" } else { "cpu" }), figures)
}

/// Returns by how much the ratio of a variant is larger than on two threads, in the work of this
/// name.
fn crowded(of_variant: &OfVariant, (work, on_two): (&str, &[OfVariant])) -> Figure {
    let variant = of_variant.variant.name;
    let name = format!("{variant} / {work}");
    let two = on_two.iter().find(|two| two.variant.name == variant);
    let two = two.ok_or_else(|| format!("{work} is left out"));
    let figure = match (of_variant.ratios(true), two.and_then(|two| two.ratios(true))) {
        (Ok(many), Ok(two)) => {
            Figure::new(name, many.iter().zip(two).map(|(many, two)| many / two).collect())
        }
        (Err(why), _) | (_, Err(why)) => Figure::not_run(name, why),
    };
    figure.at_most(MOST_TO_TWO_THREADS, "x")
}

fn show(
    (title, figures): Section,
    all: &mut Vec<Figure>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if figures.is_empty() {
        return Ok(());
    }
    table(&title, &figures, out)?;
    out.flush()?;
    all.extend(figures.into_iter().map(|figure| {
        let name = format!("{title}: {}", figure.name);
        Figure { name, ..figure }
    }));
    Ok(())
}
