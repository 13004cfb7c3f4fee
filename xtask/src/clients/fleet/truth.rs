//! The figures of single files, as `about-memory` prints them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Bench, files, json};
use crate::failure::Failure;

/// Figures by their names, such as `ID requested` or `scope service-1 worker`.
pub(super) type Figures = BTreeMap<String, i64>;

/// Returns the figures of all single files of a generated fleet.
pub(super) fn of_files(bench: &Bench, folder: &Path) -> Result<Figures, Failure> {
    let mut figures = Figures::new();
    for file in files(folder, ".json")? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (id, ending) = name.split_once('.').ok_or("a file without an ending")?;
        if ending == "dmd.json" {
            of_dump(bench, &file, id, &mut figures)?;
        } else {
            of_report(bench, &file, id, &mut figures)?;
        }
    }
    Ok(figures)
}

fn of_dump(bench: &Bench, file: &Path, id: &str, figures: &mut Figures) -> Result<(), Failure> {
    let ask = |words: &[&str]| json(Command::new(&bench.about_memory).args(words).arg(file));
    let heap = ask(&["heap", "tree", "--json"])?;
    for name in ["blocks", "requested", "slop"] {
        figures.insert(format!("{id} {name}"), whole(&heap["accounts"][name])?);
    }
    for (axis, prefix) in [("scope", "scope"), ("type", "type"), ("state", "state")] {
        let census = ask(&["heap", "census", "--json", "--by", axis])?;
        for (name, sum) in census.as_object().ok_or("a census is no object")? {
            let bytes = whole(&sum["bytes"])?;
            if bytes > 0 {
                figures.insert(format!("{id} {prefix} {name}"), bytes);
            }
        }
    }
    Ok(())
}

fn of_report(bench: &Bench, file: &Path, id: &str, figures: &mut Figures) -> Result<(), Failure> {
    let show = json(Command::new(&bench.about_memory).args(["show", "--json"]).arg(file))?;
    let trees = show["processes"][0]["trees"].as_array().ok_or("a report without trees")?;
    for tree in trees {
        let name = tree["name"].as_str().unwrap_or_default();
        let name = match name {
            "explicit" | "heap-allocated" | "heap-committed" | "resident" | "vsize" => name,
            _ => continue,
        };
        figures.insert(format!("{id} {name}"), whole(&tree["amount"])?);
        let kids = tree["kids"].as_array().into_iter().flatten();
        for kid in kids.filter(|kid| kid["name"] == "heap-unclassified") {
            figures.insert(format!("{id} heap-unclassified"), whole(&kid["amount"])?);
        }
    }
    Ok(())
}

fn whole(value: &Value) -> Result<i64, Failure> {
    value.as_i64().ok_or_else(|| format!("{value} is no whole number").into())
}
