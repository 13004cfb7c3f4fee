//! `about-memory top PROGRAM`: shows the tree of a running program in a terminal, and refreshes it.

mod history;
mod state;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime};

use clap::Args;
use memreport::__private::stamp;
use memreport::serve::Request;
use memreport_analysis::analysis::{self, ExplainOptions};
use ratatui::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, Event, KeyEventKind,
};
use ratatui::crossterm::execute;

use crate::command::flags::{Output, candidates, seconds};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::DumpReader;
use crate::input::folder::working_directory;
use crate::input::live::{self, Connection, LiveError, Target};
use crate::input::open::NamedBytes;
use crate::input::progress;
use crate::render::terminal::screen;
use state::{State, UserAction};
use std::process::ExitCode;

/// `about-memory top`
#[derive(Debug, Args)]
pub struct TopArgs {
    /// A running program, by pid or name; see `about-memory ps`
    #[arg(value_name = "PID|NAME", add = candidates::programs())]
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
    Save,
    Places,
}

/// An answer of that thread.
enum Answer {
    Report(Result<Vec<u8>, LiveError>),
    Minimized(Result<String, LiveError>),
    /// The name of the saved file.
    Saved(Result<String, Failure>),
    /// The unreported places, as text.
    Places(Result<String, Failure>),
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
        state.screen.is_coloured = context.is_coloured();
        progress::disable();
        state.receive(first);
        // Restores the terminal after a panic too.
        let mut terminal = ratatui::try_init()?;
        let has_mouse = execute!(io::stdout(), EnableMouseCapture).is_ok();
        let done = watch(&mut terminal, &mut state, &commands, &received);
        if has_mouse {
            // The terminal is left in any case.
            let _ = execute!(io::stdout(), DisableMouseCapture);
        }
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
            Ok(Command::Save) => Answer::Saved(save(connection)),
            Ok(Command::Places) => Answer::Places(unreported_places(connection)),
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

/// Saves a report in the working directory. Returns the name of the file.
fn save(connection: &Connection) -> Result<String, Failure> {
    let report = connection.report(false)?.report;
    let name = format!("memory-{}-{}.json.gz", connection.pid(), stamp(SystemTime::now()));
    let mut file = Output::create(Path::new(&name))?;
    file.write_all(&report)?;
    file.keep()?;
    Ok(name)
}

/// Returns the summary of a dump: the unreported places with their suggestions.
fn unreported_places(connection: &Connection) -> Result<String, Failure> {
    let dump = connection.report(true)?.dump.ok_or("the program sent no dump")?;
    let dump = NamedBytes { name: "the program", bytes: &dump };
    let dump = DumpReader::default().read_bytes(dump, &mut io::sink())?;
    let mut options = ExplainOptions::default();
    options.top = 100;
    options.root = working_directory();
    let mut text = Vec::new();
    analysis::write_summary(&analysis::explain(&dump, &options), &options, &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
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
                Event::Key(key) if key.kind != KeyEventKind::Release => state.key(key),
                Event::Mouse(mouse) => {
                    state.mouse(mouse);
                    None
                }
                _ => None,
            };
            // A closed channel means that the other thread has ended.
            match action {
                Some(UserAction::Quit) => return Ok(()),
                Some(UserAction::Report) => _ = commands.send(Command::Report),
                Some(UserAction::Minimize) => _ = commands.send(Command::Minimize),
                Some(UserAction::Save) => _ = commands.send(Command::Save),
                Some(UserAction::Places) => {
                    state.show_message("taking a dump and looking up its functions …");
                    let _ = commands.send(Command::Places);
                }
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
                Answer::Saved(Ok(name)) => state.show_message(format!("saved {name}")),
                Answer::Places(Ok(text)) => state.show_sheet("unreported places", &text),
                Answer::Saved(Err(error)) | Answer::Places(Err(error)) => {
                    state.show_message(error.with_causes());
                }
                Answer::Report(Err(error)) | Answer::Minimized(Err(error)) => {
                    state.show_message(error.to_string());
                }
            }
        }
    }
}
