//! The tree, groups, cycles and paths as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::Retention;
use super::cycle::Cycle;
use super::groups::RetainedGroup;
use super::roots::{ExternalRoot, HandleCount};
use super::step::{Step, StepPlace};
use super::tree::{RetainedName, RetainedNode};
use super::why_alive::WhyAlive;
use crate::read::Sum;

/// Writes the tree of the largest retained subtrees, and the cycles that nothing outside of them
/// points at.
///
/// # Errors
///
/// If writing fails.
pub fn write_tree_json(
    retention: &Retention<'_>,
    tree: &RetainedNode,
    cycles: &[Cycle],
    out: &mut dyn Write,
) -> io::Result<()> {
    let cycles: Vec<Value> = cycles.iter().map(|cycle| cycle_value(retention, cycle)).collect();
    let Sum { blocks, bytes } = retention.untracked();
    let untracked = json!({ "bytes": bytes, "blocks": blocks });
    write(&json!({ "heap": tree_value(tree), "untracked": untracked, "cycles": cycles }), out)
}

/// Writes groups of blocks with what each retains.
///
/// # Errors
///
/// If writing fails.
pub fn write_groups_json(groups: &[RetainedGroup], out: &mut dyn Write) -> io::Result<()> {
    let value = |group: &RetainedGroup| {
        let RetainedGroup { name, blocks, own, retained } = group;
        json!({ "name": name, "retained": retained, "own": own, "blocks": blocks })
    };
    write(&groups.iter().map(value).collect::<Value>(), out)
}

/// Writes the paths that keep blocks alive.
///
/// # Errors
///
/// If writing fails.
pub fn write_why_alive_json(
    retention: &Retention<'_>,
    why: &WhyAlive,
    out: &mut dyn Write,
) -> io::Result<()> {
    let steps =
        |steps: &[Step]| steps.iter().map(|step| step_value(retention, step)).collect::<Value>();
    let paths = why
        .paths
        .iter()
        .map(|way| json!({ "blocks": way.blocks, "bytes": way.bytes, "steps": steps(&way.steps) }));
    write(
        &json!({
            "blocks": why.blocks, "own": why.own, "retained": why.retained,
            "keeper": why.dominator.as_ref().map(|step| step_value(retention, step)),
            "ways": paths.collect::<Value>(), "blocksByOtherWays": why.blocks_by_other_paths,
        }),
        out,
    )
}

fn tree_value(node: &RetainedNode) -> Value {
    let mut value = json!({
        "retained": node.bytes, "own": node.own, "blocks": node.blocks,
        "kids": node.children.iter().map(tree_value).collect::<Value>(),
    });
    let (is, name) = match &node.name {
        RetainedName::Heap => ("heap", Value::Null),
        RetainedName::Static(name) => ("static", json!(name)),
        RetainedName::Outside(name) => ("outside", json!(name)),
        RetainedName::External(root) => external_words(root),
        RetainedName::Shared => ("shared", Value::Null),
        RetainedName::Cycles { count, handles } => {
            value["counts"] = counts(*handles).0.into();
            ("cycles", json!(count))
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

fn external_words(root: &ExternalRoot) -> (&'static str, Value) {
    match root {
        ExternalRoot::Reported(by) => ("reported", json!(by)),
        ExternalRoot::Skipped(field) => ("skipped", json!(field)),
        ExternalRoot::Unknown => ("unknown", Value::Null),
        ExternalRoot::Nothing => ("nothing", Value::Null),
    }
}

fn counts(handles: HandleCount) -> (&'static str, u64) {
    match handles {
        HandleCount::Leaked => ("leaked", 0),
        HandleCount::Outside(handles) => ("outside", handles),
        HandleCount::Unknown => ("unknown", 0),
    }
}

fn cycle_value(retention: &Retention<'_>, cycle: &Cycle) -> Value {
    let (held, by) = external_words(&cycle.external);
    let (counts, handles) = counts(cycle.handles);
    json!({
        "cycles": cycle.count, "blocks": cycle.blocks, "retained": cycle.retained,
        "held": held, "by": by, "counts": counts, "handlesOutside": handles, "site": cycle.site,
        "steps": cycle.steps.iter().map(|step| step_value(retention, step)).collect::<Value>(),
    })
}

fn step_value(retention: &Retention<'_>, step: &Step) -> Value {
    let mut value = match &step.place {
        StepPlace::Static(name) => json!({ "is": "static", "name": name }),
        StepPlace::Outside(name) => json!({ "is": "outside", "name": name }),
        StepPlace::External(root) => {
            let (is, name) = external_words(root);
            json!({ "is": is, "name": name })
        }
        StepPlace::Cycle { blocks, external, handles } => {
            let (held, by) = external_words(external);
            let (counts, _) = counts(*handles);
            json!({ "is": "cycle", "blocks": blocks, "held": held, "by": by, "counts": counts })
        }
        StepPlace::Block(block) => {
            let of = retention.dump.blocks.at(*block);
            let what = retention.sites.get(of.kind.alloc).block_type.describe();
            let address = hexadecimal(retention.address(*block));
            json!({ "is": "block", "address": address, "bytes": of.usable(), "type": what })
        }
    };
    value["alikeBefore"] = step.alike.into();
    if let Some(pointer) = &step.pointer {
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
