//! Programs that declare DMD themselves, with the library.

use crate::dumps::about_memory;
use crate::subject::{With, command, output};

const WITH_DMD: &str = env!("CARGO_BIN_EXE_with-dmd");

/// The program's own tracker tracks it; the library passes its calls through.
#[test]
fn the_programs_own_tracker_has_its_blocks_and_the_library_none() {
    for state in ["", "1", "--mode=cumulative"] {
        let done = output(command(WITH_DMD, With::Library(state)));
        let (text, errors) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{text}{errors}");
        assert_eq!(errors, "", "nobody complains of a second copy");
        let is_awake = if state.is_empty() { "asleep" } else { "awake" };
        assert_eq!(text, format!("1000000 bytes once, {is_awake}\n"));
    }
}

#[test]
fn one_snapshot_is_saved_by_the_programs_own_tracker() {
    let (out, notes) = about_memory(&["run", "--children", "--", WITH_DMD]).expect("it runs");
    assert_eq!(out.matches("Snapshot of process ").count(), 1, "{out}");
    assert!(out.contains("with-dmd/kept"), "its reporter is there: {out}");
    assert!(!notes.contains("has no DMD"), "{notes}");
}
