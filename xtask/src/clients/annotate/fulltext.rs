//! The full-text index of the tests, without its derives, its reporters and its planted faults.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Bench, Program};
use crate::build;
use crate::failure::Failure;

/// The full-text index.
pub(super) struct Fulltext;

const MANIFEST: &str = r#"[package]
name = "fulltext"
version = "0.1.0"
edition = "2024"

[dependencies]
memreport = { path = "ROOT/memreport" }
dmd = { package = "memreport-dmd", path = "ROOT/dmd" }
clap = { version = "4", features = ["derive"] }
flate2 = "1"
serde_json = "1"

[workspace]
"#;

/// Parts of files that measure or plant faults: from the first text up to the second.
const CUTS: [(&str, &str, &str); 7] = [
    ("settings.rs", "    /// Plant a fault", "}\n\n/// All settings"),
    ("settings.rs", "/// Measures the heap of a JSON", "#[cfg(test)]\nmod tests"),
    ("documents.rs", "    /// Measures only the path", "    pub(crate) fn words"),
    ("workers.rs", "    /// Reports its memory", "    /// Starts the workers"),
    ("program.rs", "    if !arguments.plant", "    let settings = Settings"),
    ("program.rs", "    let _reports = shop.report();\n", "    thread::scope"),
    ("program.rs", "    for (number, fault) in", "    if arguments.no_snapshot"),
];

impl Program for Fulltext {
    fn name(&self) -> &'static str {
        "fulltext"
    }

    fn features(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, bench: &Bench) -> Result<(), Failure> {
        let root = build::root();
        let from = root.join("tests/src/bin/fulltext");
        let folder = bench.package.join("src/bin/fulltext");
        fs::create_dir_all(&folder)?;
        let manifest = MANIFEST.replace("ROOT", &root.to_string_lossy());
        fs::write(bench.package.join("Cargo.toml"), manifest)?;
        fs::copy(root.join("Cargo.lock"), bench.package.join("Cargo.lock"))?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(entry.path())?;
            match name.as_str() {
                "README.md" | "faults.rs" => continue,
                _ => fs::write(folder.join(&name), without_measuring(&name, &text)?)?,
            }
        }
        Ok(())
    }

    fn scan(&self, program: &Path, report: &Path, bench: &Bench) -> Result<(), Failure> {
        let mut command = Command::new(program);
        command.arg(build::root().join("memreport")).arg("--snapshot").arg(report);
        bench.answer(command.env("DMD", "--mode=scan")).map(drop)
    }
}

/// Returns the text of a file without what measures.
fn without_measuring(name: &str, text: &str) -> Result<String, Failure> {
    let mut text = text.replace(", MallocSizeOf)]", ")]").replace("MallocSizeOf, ", "");
    for (file, first, end) in CUTS.iter().filter(|(file, ..)| *file == name) {
        let start = text.find(first).ok_or_else(|| format!("{file} has no `{first}`"))?;
        let length = text[start..].find(end).ok_or_else(|| format!("{file} has no `{end}`"))?;
        text.replace_range(start..start + length, "");
    }
    for first in ["#[malloc_size_of(", "memreport::reporter!("] {
        while let Some(start) = text.find(first) {
            let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
            let end = closing(&text, start).ok_or("a parenthesis is open")?;
            // The bracket or the semicolon, and the end of the line.
            text.replace_range(line..(end + 2).min(text.len()), "");
        }
    }
    let lines = text.lines().filter(|line| {
        !line.starts_with("use memreport::")
            && !line.contains("dmd::assert_fully_reported!")
            && !matches!(*line, "mod faults;" | "use crate::faults::Fault;")
    });
    let text: Vec<&str> = lines.collect();
    Ok(text.join("\n").replace("use clap::{Parser, ValueEnum};", "use clap::Parser;") + "\n")
}

/// Returns the place of the parenthesis that closes the first one from a place on, from behind it.
fn closing(text: &str, start: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, letter) in text[start..].char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(start + at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_measures_is_removed() {
        let text = "use memreport::MallocSizeOf;\n/// A cart.\n#[derive(Debug, MallocSizeOf)]\nstruct Cart {\n    \
                    #[malloc_size_of(\n        ignore = \"a (b)\"\n    )]\n    items: Vec<u8>,\n}\nmemreport::reporter!(\n    \"a\",\n    B\n);\n";
        assert_eq!(
            without_measuring("cart.rs", text).unwrap(),
            "/// A cart.\n#[derive(Debug)]\nstruct Cart {\n    items: Vec<u8>,\n}\n"
        );
    }
}
