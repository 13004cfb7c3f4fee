//! The cost of entering a scope by each API, and of a span with and without the scope layer.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use crate::bench::figure::{Figure, lines, table};
use crate::build;
use crate::failure::Failure;

/// The target of each API, in nanoseconds on a quiet machine.
const TARGETS: [(&str, f64); 1] = [("scope!", 4.0)];

/// Runs `cargo xtask bench scopes [--quick]`. Returns `false` when a target is missed.
pub(crate) fn run(is_quick: bool, out: &mut dyn Write) -> Result<bool, Failure> {
    let program = build::release("memreport-tests", "requests")?;
    let rounds = if is_quick { 5 } else { 21 };
    let mut costs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..rounds {
        let output = Command::new(&program).arg("cost").env_remove("DMD").output()?;
        for line in String::from_utf8(output.stdout)?.lines() {
            let (cost, name) = line.split_once(' ').ok_or("a line without a name")?;
            costs.entry(name.to_owned()).or_default().push(cost.parse()?);
        }
    }
    if costs.is_empty() {
        return Err("the program has measured nothing".into());
    }
    let figures: Vec<Figure> = costs
        .into_iter()
        .map(|(name, costs)| {
            let target = TARGETS.iter().find(|(of, _)| *of == name).map(|(_, target)| *target);
            Figure::new(name, costs).at_most(target, "ns")
        })
        .collect();
    table(&format!("Entering and leaving a scope ({rounds} rounds)"), &figures, out)?;
    Ok(lines(&figures, out)?)
}
