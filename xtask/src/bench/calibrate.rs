//! `cargo xtask calibrate`: writes the error of each size formula into the documents.

use std::fs;
use std::io::Write;

use crate::build;
use crate::failure::Failure;

/// The first line of the table, both in the document and in the test's output.
const HEAD: &str = "| type | without a tracker it reports |";

/// Measures the errors and replaces the table.
pub(crate) fn run(out: &mut dyn Write) -> Result<bool, Failure> {
    let table = std::env::temp_dir().join(format!("calibration-{}.md", std::process::id()));
    let mut cargo = build::cargo();
    cargo.args(["test", "--quiet", "--package", "memreport-tests", "--test", "calibrated"]);
    if !cargo.env("WRITE_CALIBRATION", &table).status()?.success() {
        return Ok(false);
    }
    let fresh = fs::read_to_string(&table)?;
    fs::remove_file(&table)?;
    let path = build::root().join("docs/guide/src/reference/impls.md");
    let text = fs::read_to_string(&path)?;
    fs::write(
        &path,
        replaced(&text, &fresh).ok_or("docs/guide/src/reference/impls.md has no such table")?,
    )?;
    write!(out, "{fresh}")?;
    Ok(true)
}

/// Returns the document with a new table, which ends at the first blank line.
fn replaced(text: &str, fresh: &str) -> Option<String> {
    let (before, rest) = text.split_once(HEAD)?;
    let behind = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
    Some(format!("{before}{fresh}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_replaced() {
        let text = format!("Before.\n\n{HEAD}\n|---|---|\n| old | -1.0 % |\n\nBehind.\n");
        let fresh = format!("{HEAD}\n|---|---|\n| new | +0.0 % |\n");
        assert_eq!(replaced(&text, &fresh), Some(format!("Before.\n\n{fresh}\nBehind.\n")));
        let ends = format!("{HEAD}\n| old | -1.0 % |\n");
        assert_eq!(replaced(&ends, &fresh), Some(fresh.clone()));
        assert_eq!(replaced("no table", &fresh), None);
    }
}
