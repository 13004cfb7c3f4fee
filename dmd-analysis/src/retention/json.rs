//! Who holds whom, as JSON for programs.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::Holds;
use super::circle::{Circle, Counted};
use super::groups::HeldGroup;
use super::held::Held;
use super::roots::Outside;
use super::step::{Place, Step};
use super::tree::{Retained, RetainedName};

/// Writes the tree of what is retained, and the cycles that nothing outside points at.
///
/// # Errors
///
/// If writing fails.
pub fn write_tree_json(
    holds: &Holds<'_>,
    tree: &Retained,
    circles: &[Circle],
    out: &mut dyn Write,
) -> io::Result<()> {
    let circles: Vec<Value> = circles.iter().map(|circle| circle_value(holds, circle)).collect();
    write(&json!({ "heap": tree_value(tree), "cycles": circles }), out)
}

/// Writes groups of blocks by what each retains.
///
/// # Errors
///
/// If writing fails.
pub fn write_groups_json(groups: &[HeldGroup], out: &mut dyn Write) -> io::Result<()> {
    let value = |group: &HeldGroup| {
        let HeldGroup { name, blocks, own, retained } = group;
        json!({ "name": name, "retained": retained, "own": own, "blocks": blocks })
    };
    write(&groups.iter().map(value).collect::<Value>(), out)
}

/// Writes by which ways blocks are held.
///
/// # Errors
///
/// If writing fails.
pub fn write_held_json(holds: &Holds<'_>, held: &Held, out: &mut dyn Write) -> io::Result<()> {
    let steps =
        |steps: &[Step]| steps.iter().map(|step| step_value(holds, step)).collect::<Value>();
    let ways = held
        .ways
        .iter()
        .map(|way| json!({ "blocks": way.blocks, "bytes": way.bytes, "steps": steps(&way.steps) }));
    write(
        &json!({
            "blocks": held.blocks.len(), "own": held.own, "retained": held.retained,
            "keeper": held.keeper.as_ref().map(|step| step_value(holds, step)),
            "ways": ways.collect::<Value>(), "blocksByOtherWays": held.others,
        }),
        out,
    )
}

fn tree_value(node: &Retained) -> Value {
    let mut value = json!({
        "retained": node.bytes, "own": node.own, "blocks": node.blocks,
        "kids": node.kids.iter().map(tree_value).collect::<Value>(),
    });
    let (is, name) = match &node.name {
        RetainedName::Heap => ("heap", Value::Null),
        RetainedName::Static(name) => ("static", json!(name)),
        RetainedName::Outside(outside) => outside_words(outside),
        RetainedName::Shared => ("shared", Value::Null),
        RetainedName::Cycles(cycles, counted) => {
            value["counts"] = counts(*counted).0.into();
            ("cycles", json!(cycles))
        }
        RetainedName::Blocks { block_type, site, address } => {
            value["site"] = json!(site);
            value["address"] = address.map_or(Value::Null, hexadecimal);
            ("blocks", json!(block_type))
        }
        RetainedName::Other(number) => ("other", json!(number)),
    };
    value["is"] = is.into();
    value["name"] = name;
    value
}

fn outside_words(outside: &Outside) -> (&'static str, Value) {
    match outside {
        Outside::Reported(by) => ("reported", json!(by)),
        Outside::Skipped(field) => ("skipped", json!(field)),
        Outside::Unknown => ("unknown", Value::Null),
    }
}

fn counts(counted: Counted) -> (&'static str, u64) {
    match counted {
        Counted::Leaked => ("leaked", 0),
        Counted::Outside(handles) => ("outside", handles),
        Counted::Unknown => ("unknown", 0),
    }
}

fn circle_value(holds: &Holds<'_>, circle: &Circle) -> Value {
    let (held, by) = outside_words(&circle.outside);
    let (counts, handles) = counts(circle.counted);
    json!({
        "cycles": circle.cycles, "blocks": circle.blocks, "retained": circle.retained,
        "held": held, "by": by, "counts": counts, "handlesOutside": handles, "site": circle.site,
        "steps": circle.steps.iter().map(|step| step_value(holds, step)).collect::<Value>(),
    })
}

fn step_value(holds: &Holds<'_>, step: &Step) -> Value {
    let mut value = match &step.place {
        Place::Static(name) => json!({ "is": "static", "name": name }),
        Place::Outside(outside) => {
            let (is, name) = outside_words(outside);
            json!({ "is": is, "name": name })
        }
        Place::Cycle(blocks, outside, counted) => {
            let (held, by) = outside_words(outside);
            let (counts, _) = counts(*counted);
            json!({ "is": "cycle", "blocks": blocks, "held": held, "by": by, "counts": counts })
        }
        Place::Block(block) => {
            let of = &holds.dump.blocks[*block];
            let what = holds.sites.get(of.alloc).block_type.describe();
            let address = hexadecimal(holds.address(*block));
            json!({ "is": "block", "address": address, "bytes": of.usable(), "type": what })
        }
    };
    value["alikeBefore"] = step.alike.into();
    if let Some(pointer) = &step.by {
        value["at"] = pointer.at.into();
        value["into"] = pointer.into.into();
        value["field"] = json!(pointer.field);
    }
    value
}

fn hexadecimal(address: u64) -> Value {
    format!("{address:x}").into()
}

fn write(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
