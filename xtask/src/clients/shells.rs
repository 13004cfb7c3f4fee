//! Completes words in real shells: bash, zsh and fish.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::build;
use crate::failure::Failure;
use crate::on_path;
use crate::scratch::Scratch;

/// A shell, with the script that completes each line of the file `lines` and prints `== LINE` and
/// the words.
struct Shell {
    name: &'static str,
    script: &'static str,
}

const SHELLS: [Shell; 3] = [
    Shell { name: "bash", script: include_str!("shells/complete.bash") },
    Shell { name: "zsh", script: include_str!("shells/complete.zsh") },
    Shell { name: "fish", script: include_str!("shells/complete.fish") },
];

/// Lines to complete, each with the word that must come: a command, a flag, its value, a file, and
/// a process.
const LINES: [(&str, &str); 5] = [
    ("about-memory heap cen", "census"),
    ("about-memory show --desc", "--descriptions"),
    ("about-memory show --units m", "mb"),
    ("about-memory show rep", "report.json"),
    ("about-memory inspect sleeping-b", "sleeping-bear"),
];

/// A process to complete, which ends with the check.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns whether every shell that is installed completes every line.
///
/// # Errors
///
/// If a program cannot be started.
pub(crate) fn run(out: &mut dyn Write) -> Result<bool, Failure> {
    let about_memory = build::debug("about-memory", "about-memory")?;
    let scratch = Scratch::new()?;
    let folder = scratch.0.join("shells");
    let programs = scratch.0.join("programs");
    for folder in [&folder, &programs] {
        fs::create_dir_all(folder)?;
    }
    fs::write(folder.join("report.json"), "{}")?;
    let lines: Vec<_> = LINES.iter().map(|(line, _)| format!("{line}\n")).collect();
    fs::write(programs.join("lines"), lines.concat())?;
    let sleeper = programs.join("sleeping-bear");
    fs::copy(on_path::find(&["sleep"], "coreutils")?, &sleeper)?;
    let _sleeper = Sleeper(Command::new(sleeper).arg("600").spawn()?);
    let mut all_hold = true;
    for shell in &SHELLS {
        all_hold &= match on_path::find(&[shell.name], shell.name) {
            Ok(_) => check(shell, &about_memory, (&folder, &programs), out)?,
            Err(missing) => {
                writeln!(out, "clients shells: not run: {missing}")?;
                true
            }
        };
    }
    Ok(all_hold)
}

fn check(
    shell: &Shell,
    about_memory: &Path,
    (folder, programs): (&Path, &Path),
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let script = programs.join(format!("complete.{}", shell.name));
    fs::write(&script, shell.script)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = about_memory.parent().map(Path::to_owned);
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)))?;
    let mut command = Command::new(shell.name);
    command.arg(&script).arg(programs.join("lines")).env("PATH", path).current_dir(folder);
    let output = command.env("HOME", programs).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The first one must be missing: a check that finds it would find anything.
    let planted = [("about-memory show --desc", "--no-such-flag")];
    let missing: Vec<_> =
        planted.iter().chain(&LINES).filter(|line| !completes(&text, line)).collect();
    for (line, word) in missing.iter().skip(1) {
        writeln!(out, "`{line}` is not completed to `{word}`")?;
    }
    let holds = missing.len() == 1 && missing[0].1 == planted[0].1;
    writeln!(
        out,
        "clients shells: {} completes {} of {} lines",
        shell.name,
        LINES.len() + 1 - missing.len(),
        LINES.len()
    )?;
    if !holds {
        writeln!(out, "{text}{}", String::from_utf8_lossy(&output.stderr))?;
    }
    Ok(holds)
}

/// Returns whether the answer to a line has the word.
fn completes(text: &str, (line, word): &(&str, &str)) -> bool {
    let answers = text.split("== ");
    let mut of_line = answers.filter_map(|answer| answer.strip_prefix(line)?.strip_prefix('\n'));
    of_line.any(|answer| answer.split_whitespace().any(|found| found == *word))
}
