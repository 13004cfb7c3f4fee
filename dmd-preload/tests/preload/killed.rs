//! Commands of `about-memory` that run in a process of their own, to be killed.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::dumps::about_memory;

/// The variable with the words of a command that a second run of these tests runs.
const WORDS: &str = "TEST_COMMAND";

#[test]
fn runs_a_command_for_another_test() {
    if let Ok(words) = std::env::var(WORDS) {
        about_memory(&words.split(' ').collect::<Vec<_>>()).expect("it succeeds");
    }
}

/// Starts a command in a process of its own.
pub(crate) fn start(words: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", "killed::runs_a_command_for_another_test"]);
    command.env(WORDS, words.join(" ")).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

/// Kills a command after this time. Returns whether it had not ended by itself.
pub(crate) fn is_killed(words: &[&str], time: Duration) -> bool {
    let mut command = start(words);
    thread::sleep(time);
    // It may have ended.
    let _ = command.kill();
    !command.wait().expect("it ends").success()
}
