//! Cycles that nothing outside of them points at, with a verdict for each.

use std::io::{self, Write};

use super::paths::write_steps;
use super::words::{bytes, count, cut};
use crate::analysis::number::commas;
use crate::retention::Retention;
use crate::retention::cycle::Cycle;
use crate::retention::roots::{ExternalRoot, HandleCount};

/// Writes the cycles that nothing outside of them points at.
///
/// # Errors
///
/// If writing fails.
pub fn write_cycles(
    retention: &Retention<'_>,
    cycles: &[Cycle],
    top: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let all: u64 = cycles.iter().map(|cycle| cycle.count).sum();
    if all == 0 {
        return Ok(());
    }
    let retained = cycles.iter().map(|cycle| cycle.retained).fold(0, u64::saturating_add);
    let (number, them) = (count(all, "cycle"), if all == 1 { "it retains" } else { "they retain" });
    writeln!(out, "\n{number} that nothing outside points at; {them} {}:", bytes(retained))?;
    for (number, cycle) in (1..).zip(cycles.iter().take(top)) {
        let number: usize = number;
        let alike = match cycle.count {
            1 => String::new(),
            cycles => format!("{} cycles like this retain ", commas(cycles.into())),
        };
        let blocks = count(cycle.blocks, "block");
        writeln!(out, "{number:>3}. {alike}{} in a cycle of {blocks}", bytes(cycle.retained))?;
        writeln!(out, "     {}", verdict(cycle))?;
        if let Some(site) = &cycle.site {
            writeln!(out, "     allocated at {}", cut(site, retention.options.width, 18))?;
        }
        write_steps(retention, &cycle.steps, "     ", out)?;
    }
    if cycles.len() > top {
        writeln!(out, "     … and {} more", commas((cycles.len() - top) as i128))?;
    }
    Ok(())
}

fn verdict(cycle: &Cycle) -> String {
    match (&cycle.external, cycle.handles) {
        (ExternalRoot::Nothing, _) => "leaked: nothing outside refers to it".to_owned(),
        (ExternalRoot::Unknown, HandleCount::Leaked) => {
            "leaked: every handle that its blocks count is in the cycle itself".to_owned()
        }
        (ExternalRoot::Unknown, HandleCount::Outside(handles)) => {
            let are = if handles == 1 { "is" } else { "are" };
            format!(
                "{} {are} in no block: on a stack, in a library, or forgotten",
                count(handles, "handle")
            )
        }
        (ExternalRoot::Unknown, HandleCount::Unknown) => {
            "held from a stack or a library, or leaked: nothing counts its handles".to_owned()
        }
        (root, _) => format!("held: {}", root.describe()),
    }
}
