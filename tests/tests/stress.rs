//! Tests the table of live blocks under load from several threads. `cargo xtask stress` does the
//! same for longer.

use std::process::Command;

#[test]
fn every_lasting_block_is_in_every_dump_once() {
    let modes = [
        ("--stacks=none", ""),
        ("--stacks=full", ""),
        ("--stacks=partial", ""),
        ("--mode=cumulative", ""),
        ("--stacks=full", "toggle"),
    ];
    for (variable, toggle) in modes {
        let mut subject = Command::new(env!("CARGO_BIN_EXE_stress"));
        let output = subject.env("DMD", variable).args(["0.5", toggle]).output();
        let output = output.expect("cargo has built it");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variable} {toggle}: {message}");
    }
}
