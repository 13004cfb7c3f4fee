//! Writes trees as JSON: every node with its amount as a number and as text.
//!
//! Writes piece by piece: a tree may be deeper than the stack allows.

use crate::report::amount::Amount;
use crate::report::numbers::{self, Unit};
use crate::report::page::{Page, ProcessPage};
use crate::report::report_tree::Presence;
use crate::report::tree::{Settings, Tree};
use serde::Serialize;
use std::io::{self, Write};

/// One node, without its children.
#[derive(Serialize)]
struct WireNode<'a> {
    name: &'a str,
    /// The amount as a number; null if it is none.
    amount: serde_json::Value,
    value: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(skip_serializing_if = "is_zero")]
    reports: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    only_in: Option<&'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
}

/// Writes the page as one object.
///
/// # Errors
/// The JSON cannot be written.
pub fn write(page: &Page<'_>, notes: &[String], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"version\":1,\"notes\":{},\"processes\":[", json(&notes)?)?;
    let mut separator = "\n";
    page.processes(|process| {
        write!(out, "{separator}")?;
        separator = ",\n";
        write_process(&process, page.settings, out)
    })?;
    writeln!(out, "\n]}}")
}

fn write_process(
    process: &ProcessPage<'_>,
    settings: &Settings,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (name, warnings, invalid) =
        (json(&process.name)?, json(&process.warnings)?, json(&process.invalid)?);
    write!(out, "{{\"name\":{name},\"warnings\":{warnings},\"invalid\":{invalid},\"trees\":[")?;
    let trees = process.explicit.iter().chain(&process.trees).chain(&process.flats);
    for (index, tree) in trees.enumerate() {
        writeln!(out, "{}", if index > 0 { "," } else { "" })?;
        write_tree(tree, process, settings, out)?;
    }
    write!(out, "]}}")
}

fn write_tree(
    tree: &Tree,
    process: &ProcessPage<'_>,
    settings: &Settings,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut depth = None;
    for step in tree.drawing_order() {
        // A step up or to the side ends nodes: close them.
        match depth {
            None => {}
            Some(before) if step.depth > before => write!(out, ",\"kids\":[")?,
            Some(before) => {
                write!(out, "}}{},", "]}".repeat(before - step.depth))?;
            }
        }
        depth = Some(step.depth);
        let item = &tree.items[step.item];
        let value = numbers::amount(&item.amount, tree.unit, settings.bytes());
        let share = (!tree.is_flat).then(|| numbers::fraction(&item.amount, &tree.root().amount));
        let node = json(&WireNode {
            name: &item.shown_name(),
            amount: number(&item.amount),
            value: &value,
            share: share.as_deref(),
            unit: (step.depth == 0).then(|| unit(tree.unit)),
            reports: item.merged,
            invalid: item.is_invalid,
            only_in: only_in(item.presence),
            description: if item.children.is_empty() {
                tree.description(process.report_tree, step.item)
            } else {
                ""
            },
        })?;
        // Without the closing brace: children may follow.
        write!(out, "{}", &node[..node.len() - 1])?;
    }
    write!(out, "}}{}", "]}".repeat(depth.unwrap_or(0)))
}

fn json<T: Serialize + ?Sized>(value: &T) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::from)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Returns whole numbers without a point, as in files.
fn number(amount: &Amount) -> serde_json::Value {
    let double = amount.number();
    let whole = (double.fract() == 0.0 && double.abs() < 1e15)
        .then(|| format!("{double:.0}").parse::<i64>());
    whole.and_then(Result::ok).map_or_else(|| double.into(), serde_json::Value::from)
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::CountCumulative => "cumulative count",
        Unit::Percentage => "hundredths of a percent",
        Unit::Unknown => "unknown",
    }
}

fn only_in(presence: Presence) -> Option<&'static str> {
    match presence {
        Presence::Both => None,
        Presence::First => Some("first"),
        Presence::Second => Some("second"),
        Presence::Added => Some("neither"),
    }
}
