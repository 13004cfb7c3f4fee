//! Writes the tasks into the guide's page, between two marks.

use std::fmt::Write as _;
use std::fs;

use super::{Done, Outcome};
use crate::build;
use crate::failure::Failure;

const PAGE: &str = "docs/guide/src/reference/tasks.md";
const BEGIN: &str = "<!-- tasks -->\n";
const END: &str = "<!-- /tasks -->";

/// Replaces the tables of the page.
pub(super) fn bless(done: &[Done]) -> Result<(), Failure> {
    let file = build::root().join(PAGE);
    let text = fs::read_to_string(&file)?;
    let (head, rest) = text.split_once(BEGIN).ok_or("the page has no mark <!-- tasks -->")?;
    let (_, tail) = rest.split_once(END).ok_or("the page has no mark <!-- /tasks -->")?;
    fs::write(file, format!("{head}{BEGIN}{}{END}{tail}", tables(done)))?;
    Ok(())
}

/// Returns an overview, and a table for each task.
fn tables(done: &[Done]) -> String {
    let mut text = String::from(
        "| task | keystrokes here | seconds | keystrokes of the best peer | seconds |\n|---|---|---|---|---|\n",
    );
    // Writing into a string does not fail.
    for (number, task) in (1..).zip(done) {
        let peer = task.best_peer().map_or("none answers | ".to_owned(), |peer| {
            let keys = peer.way.keystrokes();
            format!("{keys} ({}) | {}", peer.way.tool, seconds(&peer.outcome))
        });
        let ours = task.ours();
        let ours = format!("{} | {}", ours.way.keystrokes(), seconds(&ours.outcome));
        let _ = writeln!(text, "| {number}. {} | {ours} | {peer} |", task.task.question);
    }
    for (number, task) in (1..).zip(done) {
        let _ = writeln!(
            text,
            "\n### {number}. {}\n\nGiven: {}\n",
            task.task.question, task.task.given
        );
        let _ = writeln!(text, "| tool | keystrokes | seconds | typed |\n|---|---|---|---|");
        for tried in &task.ways {
            let keys = tried.way.keystrokes();
            let seconds = seconds(&tried.outcome);
            let typed: Vec<String> = tried.way.lines.iter().map(|line| code(line)).collect();
            let tool = tried.way.tool;
            let _ = writeln!(text, "| {tool} | {keys} | {seconds} | {} |", typed.join("<br>"));
        }
        if !task.task.without.is_empty() {
            let _ = writeln!(text, "\n{}", task.task.without);
        }
    }
    text
}

/// Returns the seconds of a processor to the answer.
fn seconds(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered(spent) => format!("{:.2}", spent.cpu.as_secs_f64()),
        Outcome::Window => "not timed".to_owned(),
        Outcome::NoAnswer(_) => "no answer".to_owned(),
        Outcome::NotRun(_) => "not run".to_owned(),
    }
}

/// Returns a line of the shell as code in a cell of a table.
fn code(line: &str) -> String {
    format!("`{}`", line.replace('|', "\\|"))
}
