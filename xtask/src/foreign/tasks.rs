//! `cargo xtask tasks`: ten tasks that a user has, by our commands and by the best peers'.
//!
//! Every line is typed as it stands into a shell, in the folder of a small package. A way counts
//! only if the answer is in its output. Peers that are not installed are named as not run.

mod page;
mod questions;
mod scene;
mod sheet;

use clap::Parser;
use std::io::Write;
use std::path::{Path, PathBuf};

use self::questions::{Answer, TASKS, Task, Way};
use self::scene::{Scene, Spent};
use crate::build;
use crate::failure::Failure;
use crate::on_path;

/// The options of the command.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Options {
    /// Only tasks with one of these words in their question
    words: Vec<String>,
    /// Write the guide's page
    #[arg(long)]
    bless: bool,
    /// The folder of about-memory and cargo-memreport, by default built for release
    #[arg(long, value_name = "FOLDER")]
    with: Option<PathBuf>,
}

/// A way to an answer, tried.
struct Tried {
    way: &'static Way,
    outcome: Outcome,
}

/// The outcome of a way.
enum Outcome {
    /// It gave the answer.
    Answered(Spent),
    /// It opens a window or waits for Ctrl-C: it is not run.
    Window,
    /// It printed something else.
    NoAnswer(String),
    /// A program is missing.
    NotRun(String),
}

/// A task with all its ways, ours first.
struct Done {
    task: &'static Task,
    ways: Vec<Tried>,
}

impl Done {
    /// Returns our way, which is always the first.
    fn ours(&self) -> &Tried {
        &self.ways[0]
    }

    /// Returns the peer with the fewest keystrokes of those that answered.
    fn best_peer(&self) -> Option<&Tried> {
        let is_way =
            |tried: &&Tried| !matches!(tried.outcome, Outcome::NotRun(_) | Outcome::NoAnswer(_));
        let answered = self.ways[1..].iter().filter(is_way);
        answered.min_by_key(|tried| tried.way.keystrokes())
    }

    /// Returns whether we answered, with at most the keystrokes of every peer that did.
    fn holds(&self) -> bool {
        let best = self.best_peer().map(|peer| peer.way.keystrokes());
        matches!(self.ours().outcome, Outcome::Answered(_))
            && best.is_none_or(|best| self.ours().way.keystrokes() <= best)
    }
}

/// Runs the tasks, or those with a word in their question. Returns `false` if one is not answered
/// by us, or a peer needs fewer keystrokes. `--bless` writes the guide's page.
///
/// # Errors
///
/// If our programs cannot be built, or a folder cannot be written.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let options = Options::try_parse_from(args)?;
    if options.bless && !options.words.is_empty() {
        return Err("--bless writes all tasks: leave out the words".into());
    }
    let programs = match &options.with {
        Some(folder) => folder.canonicalize()?,
        None => {
            build::release("about-memory", "cargo-memreport")?;
            let about_memory = build::release("about-memory", "about-memory")?;
            about_memory.parent().map(Path::to_owned).unwrap_or_default()
        }
    };
    let scene = Scene::new(&programs)?;
    let words = &options.words;
    let is_wanted = |task: &&Task| {
        let question = task.question.to_lowercase();
        words.is_empty() || words.iter().any(|word| question.contains(&word.to_lowercase()))
    };
    let mut done = Vec::new();
    for task in TASKS.iter().filter(is_wanted) {
        done.push(solve(&scene, task, out)?);
    }
    if done.is_empty() {
        return Err(format!("no task has {} in its question", words.join(" or ")).into());
    }
    if options.bless {
        sheet::bless(&done)?;
    }
    let held = done.iter().filter(|done| done.holds()).count();
    writeln!(
        out,
        "tasks: {held} of {} answered, with no more keystrokes than the best peer",
        done.len()
    )?;
    Ok(held == done.len())
}

/// Tries all ways of a task, and prints each.
fn solve(scene: &Scene, task: &'static Task, out: &mut dyn Write) -> Result<Done, Failure> {
    writeln!(out, "\n{}\n  given: {}", task.question, task.given)?;
    let mut ways = Vec::new();
    for way in task.ways {
        let tried = Tried { way, outcome: attempt(scene, task, way)? };
        let keys = way.keystrokes();
        match &tried.outcome {
            Outcome::Answered(Spent { wall, cpu }) => writeln!(
                out,
                "  {:<22} {keys:>4} keys {:>7.2} s, of a processor {:>6.2} s",
                way.tool,
                wall.as_secs_f64(),
                cpu.as_secs_f64()
            )?,
            Outcome::Window => writeln!(out, "  {:<22} {keys:>4} keys, not timed", way.tool)?,
            Outcome::NoAnswer(printed) => {
                writeln!(out, "  {:<22} {keys:>4} keys  NO ANSWER in:\n{printed}", way.tool)?;
            }
            Outcome::NotRun(why) => writeln!(out, "  {:<22} not run: {why}", way.tool)?,
        }
        for line in way.lines {
            writeln!(out, "      $ {line}")?;
        }
        ways.push(tried);
    }
    Ok(Done { task, ways })
}

/// Tries one way, from a fresh scene.
fn attempt(scene: &Scene, task: &Task, way: &Way) -> Result<Outcome, Failure> {
    for (program, package) in way.needs {
        if let Err(missing) = on_path::find(&[program], package) {
            return Ok(Outcome::NotRun(missing));
        }
    }
    let (Answer::Printed(words) | Answer::File(_, words) | Answer::Page(_, words)) = way.answer
    else {
        return Ok(Outcome::Window);
    };
    let _service = scene.prepare(task.service, way.before)?;
    let typed = scene.type_lines(way.lines)?;
    let printed = match way.answer {
        Answer::File(file, _) => scene.content(file),
        Answer::Page(file, _) => page::flame_graph(&scene.content(file))?,
        Answer::Printed(_) | Answer::Window => typed.printed,
    };
    Ok(if words.iter().all(|word| printed.contains(word)) {
        Outcome::Answered(typed.spent)
    } else {
        Outcome::NoAnswer(printed.lines().take(40).collect::<Vec<_>>().join("\n"))
    })
}
