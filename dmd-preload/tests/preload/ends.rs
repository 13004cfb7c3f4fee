//! The ways in which programs end: with a last snapshot, or a sentence that names what prevents it.

use crate::attach::usable;
use crate::dumps::{about_memory, bytes_by_stack, dump_in};
use crate::subject::{STATES, Scratch, With, assert_same, command, compile};

const WITH_A_SNAPSHOT: [&str; 8] = [
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "signal handler",
    "exit handler",
    "thread",
    "children",
];

#[test]
fn programs_that_end_by_exit_without_handlers_have_a_last_snapshot() {
    let scratch = Scratch::new("ends");
    let Some(program) = compile(&scratch, "ends.c", "ends", &[]) else { return };
    let program = program.to_str().expect("text");
    for how in WITH_A_SNAPSHOT {
        let folder = scratch.join(how);
        let folder_name = folder.to_str().expect("text");
        let words = ["run", "-o", folder_name, "--", program, how];
        let (out, notes) = about_memory(&words).expect("it runs");
        assert!(out.contains("at exit") && out.contains("(the only snapshot)"), "{how}: {out}");
        assert!(notes.contains("the program ended with exit code 7"), "{how}: {notes}");
        let stacks = bytes_by_stack(&dump_in(&folder));
        let kept = stacks.iter().filter(|(stack, _)| stack.contains("main;keep"));
        assert_eq!(kept.map(|(_, bytes)| bytes).sum::<u64>(), 50 * usable(1000), "{how}");
    }
}

#[test]
fn recordings_of_such_programs_are_whole() {
    let scratch = Scratch::new("ends-recorded");
    let Some(program) = compile(&scratch, "ends.c", "ends", &[]) else { return };
    for how in WITH_A_SNAPSHOT {
        let file = scratch.join("ends.rec");
        let [file, program] = [&file, &program].map(|path| path.to_str().expect("text"));
        let (out, _) = about_memory(&["record", "-o", file, "--", program, how]).expect("it runs");
        assert!(out.contains("Exactly: "), "{how}: {out}");
        assert!(!out.contains("not whole") && !out.contains("cut off"), "{how}: {out}");
    }
}

#[test]
fn other_ends_are_named() {
    let scratch = Scratch::new("ends-named");
    let Some(program) = compile(&scratch, "ends.c", "ends", &[]) else { return };
    let program = program.to_str().expect("text");
    for (how, cause) in [
        ("SIGSEGV", "signal 11 (SIGSEGV) ended it, which runs no exit handlers"),
        ("SIGTERM", "signal 15 (SIGTERM) ended it, which runs no exit handlers"),
        ("SIGKILL", "signal 9 (SIGKILL) ended it, which runs no exit handlers"),
        ("SIGABRT", "signal 6 (SIGABRT) ended it, which runs no exit handlers"),
        ("system call", "it ended by a call that runs no exit handlers"),
    ] {
        let (_, notes) = about_memory(&["run", "--", program, how]).expect("it runs");
        let wanted = format!("the program left no snapshot: {cause}");
        assert!(notes.contains(&wanted) && notes.contains("use --every"), "{how}: {notes}");
    }
}

#[test]
fn every_end_is_the_same_with_the_library() {
    let scratch = Scratch::new("ends-same");
    let Some(program) = compile(&scratch, "ends.c", "ends", &[]) else { return };
    let ends = ["system call", "SIGSEGV", "SIGTERM", "SIGKILL", "SIGABRT"];
    for how in WITH_A_SNAPSHOT.iter().chain(&ends) {
        let run = |with: With| {
            let mut program = command(&program, with);
            program.arg(how).current_dir(&scratch.0);
            program
        };
        assert_same(run, &STATES[..2]);
    }
}
