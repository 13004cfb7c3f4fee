//! `about-memory live PROGRAM`: the tree of a running program in a terminal, asked again and again.

mod screen;
mod sheet;
mod state;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use clap::Args;
use memreport::serve::Request;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::live::{self, Connection, LiveError, Target};
use crate::ps::seconds;
use crate::show::Failure;
use state::{State, Wish};

/// `about-memory live`
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// A running program, by number or name: `about-memory ps` lists them
    #[arg(value_name = "PID|NAME")]
    program: Target,
    /// Seconds between two reports
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = every)]
    every: Duration,
}

/// `2s`, `2`, `0.5`.
fn every(text: &str) -> Result<Duration, String> {
    seconds(text.strip_suffix('s').unwrap_or(text))
}

/// How often the terminal is looked at while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// What the thread that asks is told.
enum Question {
    Report,
    Minimize,
}

/// What it has heard.
enum Heard {
    Report(Result<Vec<u8>, LiveError>),
    Minimized(Result<String, LiveError>),
}

/// Runs the subcommand until the user has seen enough.
///
/// # Errors
/// When the program cannot be asked at first, and those of the terminal.
pub fn main(args: &WatchArgs) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err("this needs a terminal; `about-memory PID` prints the tree once".into());
    }
    let connection = live::choose(&args.program, Duration::from_secs(30))?;
    let status = connection.status()?;
    let first = connection.report(false)?.report;
    let (questions, asked) = mpsc::channel();
    let (answers, heard) = mpsc::channel();
    let every = args.every;
    thread::spawn(move || ask(&connection, every, &asked, &answers));
    let mut state = State::new(format!("{} (pid {})", status.name, status.pid));
    state.heard(first);
    // Puts the terminal back also when it panics.
    let mut terminal = ratatui::try_init()?;
    let seen = watch(&mut terminal, &mut state, &questions, &heard);
    ratatui::restore();
    seen
}

/// Asks at intervals, and whenever it is told to.
fn ask(
    connection: &Connection,
    every: Duration,
    asked: &Receiver<Question>,
    answers: &Sender<Heard>,
) {
    loop {
        let answer = match asked.recv_timeout(every) {
            Ok(Question::Report) | Err(mpsc::RecvTimeoutError::Timeout) => {
                Heard::Report(connection.report(false).map(|report| report.report))
            }
            Ok(Question::Minimize) => Heard::Minimized(minimize(connection)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

fn minimize(connection: &Connection) -> Result<String, LiveError> {
    let parts = connection.ask(&Request::new("minimize"))?;
    Ok(parts.iter().map(|part| String::from_utf8_lossy(&part.bytes)).collect())
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    state: &mut State,
    questions: &Sender<Question>,
    heard: &Receiver<Heard>,
) -> Result<(), Failure> {
    loop {
        terminal.draw(|frame| screen::draw(frame, state))?;
        if event::poll(TICK)? {
            let wish = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => state.key(key),
                _ => None,
            };
            // The thread that asks lives as long as this one listens.
            match wish {
                Some(Wish::Quit) => return Ok(()),
                Some(Wish::Report) => _ = questions.send(Question::Report),
                Some(Wish::Minimize) => _ = questions.send(Question::Minimize),
                None => {}
            }
        }
        for answer in heard.try_iter() {
            match answer {
                Heard::Report(Ok(report)) => state.heard(report),
                Heard::Minimized(Ok(said)) => {
                    state.say(said);
                    let _ = questions.send(Question::Report);
                }
                Heard::Report(Err(error)) | Heard::Minimized(Err(error)) => {
                    state.say(error.to_string());
                }
            }
        }
    }
}
