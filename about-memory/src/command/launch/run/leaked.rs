//! Writes the blocks of a scan that nothing refers to.

use memreport_analysis::analysis::{Place, commas, counted};
use memreport_analysis::retention::Left;
use std::io::{self, Write};

/// Writes the sum of the leaked blocks, and the `top` places that allocated them.
pub(super) fn write(places: &[Place], top: usize, out: &mut dyn Write) -> io::Result<()> {
    if places.is_empty() {
        return writeln!(out, "\nNothing of the program's own blocks is leaked.");
    }
    let sum = Left::sum(places);
    writeln!(
        out,
        "\nLeaked: {} bytes in {} that nothing refers to, but perhaps a thread that still runs.\n",
        commas(sum.usable()),
        counted(sum.blocks, "block")
    )?;
    for (number, place) in (1..).zip(places.iter().take(top)) {
        let totals = place.totals;
        writeln!(
            out,
            "{number:>3}. {} bytes in {}: {}",
            commas(totals.usable()),
            counted(totals.blocks, "block"),
            place.site.block_type.describe()
        )?;
        if let Some(frame) = place.site.own.as_ref().or(place.site.frames.first()) {
            writeln!(out, "     {frame}")?;
        }
    }
    if places.len() > top {
        writeln!(out, "     … and {} more places", commas((places.len() - top) as i128))?;
    }
    Ok(())
}
