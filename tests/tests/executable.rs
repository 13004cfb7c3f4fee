//! Writes the programs that tests start.

use std::path::Path;
use std::process::Command;

/// Copies a program, and sets its mode.
///
/// Another process does it. While this one has a file open for writing, a child that another test
/// forks has it open too until it becomes another program, and the kernel refuses to run the file.
pub(crate) fn install(program: &Path, copy: &Path, mode: u32) {
    let mut command = Command::new("install");
    command.args(["-m", &format!("{mode:o}"), "--"]).args([program, copy]);
    assert!(command.status().expect("coreutils are there").success(), "{command:?}");
}
