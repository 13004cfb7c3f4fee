//! Writes the block list of a dump: groups of equal blocks.

use std::io::{self, Write};

use super::keys::Keys;
use crate::collect::Dump;
use crate::collect::age::Age;
use crate::collect::groups::GroupKey;
use crate::collect::holders::HolderId;
use crate::stack::site::{self, SiteId};

/// Writes a record for each group of blocks.
pub(super) fn write_groups(dump: &Dump, keys: &mut Keys, out: &mut impl Write) -> io::Result<()> {
    let groups = &dump.contents.groups;
    let mut separator = "\n";
    for (group, count) in groups.iter() {
        let GroupKey { requested, usable, site, reports, holder, rate, age, is_freed } = *group;
        write!(out, "{separator}{{\"req\":{requested}")?;
        separator = ",\n";
        write_slop_and_site(usable - requested, site, keys, out)?;
        if dump.plan.mode.has_reports() {
            write_reports("reps", groups.reports(reports), keys, out)?;
            write_holder(holder, keys, out)?;
        }
        if count != 1 {
            write!(out, ",\"num\":{count}")?;
        }
        let weight = rate.weight(usable);
        if weight > 1.0 {
            write!(out, ",\"weight\":{weight}")?;
        }
        write_age(age, out)?;
        out.write_all(if is_freed { b",\"freed\":true}" } else { b"}" })?;
    }
    Ok(())
}

/// Writes the slop, the stack, the thread and the scope of a block.
pub(super) fn write_slop_and_site(
    slop: usize,
    site: SiteId,
    keys: &mut Keys,
    out: &mut impl Write,
) -> io::Result<()> {
    if slop != 0 {
        write!(out, ",\"slop\":{slop}")?;
    }
    write_site(site, keys, out)
}

/// Writes the stack, the thread and the scope of a block.
pub(super) fn write_site(site: SiteId, keys: &mut Keys, out: &mut impl Write) -> io::Result<()> {
    if let Some(stack) = Dump::stack(site) {
        write!(out, ",\"alloc\":\"{}\"", keys.stacks.key(stack, &mut keys.next))?;
    }
    if let Some(site) = site::site(site) {
        write!(out, ",\"thread\":{}", site.thread)?;
        if site.scope != 0 {
            write!(out, ",\"scope\":{}", site.scope)?;
        }
    }
    Ok(())
}

/// Writes the reports of a block; nothing if there are none.
pub(super) fn write_reports(
    name: &str,
    reports: impl Iterator<Item = u32>,
    keys: &mut Keys,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut reports = reports.peekable();
    if reports.peek().is_none() {
        return Ok(());
    }
    let mut before = "";
    write!(out, ",\"{name}\":[")?;
    for report in reports {
        write!(out, "{before}\"{}\"", keys.reports.key(report, &mut keys.next))?;
        before = ",";
    }
    out.write_all(b"]")
}

/// Writes the holder of an unreported block; nothing if none is known.
pub(super) fn write_holder(
    holder: HolderId,
    keys: &mut Keys,
    out: &mut impl Write,
) -> io::Result<()> {
    if holder == HolderId::default() {
        return Ok(());
    }
    let name = if holder.is_indirect() { "heldThrough" } else { "heldBy" };
    write!(out, ",\"{name}\":\"{}\"", keys.holders.key(holder.number(), &mut keys.next))
}

/// Writes the age of a block; nothing if its time was not kept.
pub(super) fn write_age(age: Age, out: &mut impl Write) -> io::Result<()> {
    age.milliseconds().map_or(Ok(()), |age| write!(out, ",\"ageMs\":{age}"))
}
