//! `about-memory top PROGRAM`: shows the tree of a running program in a terminal, and refreshes it.

mod state;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use clap::Args;
use memreport::serve::Request;
use ratatui::crossterm::event::{self, Event};

use crate::command::flags::seconds;
use crate::context::Context;
use crate::error::Failure;
use crate::input::live::{self, Connection, LiveError, Target};
use crate::render::terminal::screen;
use state::{State, UserAction};
use std::process::ExitCode;

/// `about-memory top`
#[derive(Debug, Args)]
pub struct TopArgs {
    /// A running program, by pid or name; see `about-memory ps`
    #[arg(value_name = "PID|NAME")]
    program: Target,
    /// Refresh at this interval
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = seconds)]
    every: Duration,
}

/// The interval at which the terminal is polled for keys.
const TICK: Duration = Duration::from_millis(100);

/// A request to the thread that talks to the program.
enum Command {
    Report,
    Minimize,
}

/// An answer of that thread.
enum Answer {
    Report(Result<Vec<u8>, LiveError>),
    Minimized(Result<String, LiveError>),
}

impl TopArgs {
    /// Shows the tree until the user quits.
    ///
    /// # Errors
    /// There is no terminal, or the program cannot be asked at first.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if context.terminal.is_none() || !io::stdin().is_terminal() {
            return Err("this needs a terminal; `about-memory PID` prints the tree once".into());
        }
        let connection = live::choose(&self.program, live::DEFAULT_TIMEOUT)?;
        let status = connection.status()?;
        let first = connection.report(false)?.report;
        let (commands, requested) = mpsc::channel();
        let (answers, received) = mpsc::channel();
        let every = self.every;
        thread::spawn(move || serve_commands(&connection, every, &requested, &answers));
        let mut state = State::new(format!("{} (pid {})", status.name, status.pid));
        state.receive(first);
        // Restores the terminal after a panic too.
        let mut terminal = ratatui::try_init()?;
        let done = watch(&mut terminal, &mut state, &commands, &received);
        ratatui::restore();
        done.map(|()| ExitCode::SUCCESS)
    }
}

/// Requests a report at intervals, and sends requests of the user.
fn serve_commands(
    connection: &Connection,
    every: Duration,
    commands: &Receiver<Command>,
    answers: &Sender<Answer>,
) {
    loop {
        let answer = match commands.recv_timeout(every) {
            Ok(Command::Report) | Err(mpsc::RecvTimeoutError::Timeout) => {
                Answer::Report(connection.report(false).map(|report| report.report))
            }
            Ok(Command::Minimize) => Answer::Minimized(minimize(connection)),
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
    commands: &Sender<Command>,
    received: &Receiver<Answer>,
) -> Result<(), Failure> {
    loop {
        terminal.draw(|frame| screen::draw(frame, &mut state.screen))?;
        if event::poll(TICK)? {
            let action = match event::read()? {
                Event::Key(key) => state.key(key),
                _ => None,
            };
            // A closed channel means that the other thread has ended.
            match action {
                Some(UserAction::Quit) => return Ok(()),
                Some(UserAction::Report) => _ = commands.send(Command::Report),
                Some(UserAction::Minimize) => _ = commands.send(Command::Minimize),
                None => {}
            }
        }
        for answer in received.try_iter() {
            match answer {
                Answer::Report(Ok(report)) => state.receive(report),
                Answer::Minimized(Ok(message)) => {
                    state.show_message(message);
                    let _ = commands.send(Command::Report);
                }
                Answer::Report(Err(error)) | Answer::Minimized(Err(error)) => {
                    state.show_message(error.to_string());
                }
            }
        }
    }
}
