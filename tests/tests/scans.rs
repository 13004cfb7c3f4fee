//! Scans that programs of the tests save.

use std::path::Path;
use std::process::Command;

use memreport_analysis::read::{Dump, read_file};
use memreport_analysis::symbols::{Symboliser, Types};

/// The scan of a program, and what else is known of it.
pub(crate) struct Scan {
    /// With functions and lines.
    pub(crate) dump: Dump,
    pub(crate) types: Types,
    /// The program's standard output.
    pub(crate) printed: String,
}

/// Runs a program that saves a scan as a file of this name, and then removes the files.
pub(crate) fn of_program(program: &str, file: &str) -> Scan {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scans");
    std::fs::create_dir_all(&folder).expect("the target folder is ours");
    // Under some test runners each test is a process of its own.
    let report = folder.join(format!("{}-{file}", std::process::id()));
    let mut command = Command::new(program);
    let output = command.arg(&report).env("DMD", "--mode=scan").output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = dmd::dump::beside(&report);
    let mut dump = read_file(&file).expect("the dump is there, and good");
    let _ = std::fs::remove_file(report);
    let _ = std::fs::remove_file(file);
    let mut symboliser = Symboliser::default();
    symboliser.symbolicate(&mut dump);
    let types = symboliser.types(&dump);
    Scan { dump, types, printed: String::from_utf8(output.stdout).expect("it prints text") }
}
