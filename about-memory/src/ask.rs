//! `about-memory ask PROGRAM COMMAND`: anything that a running program can be asked; `track` and `minimize` are short for two.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use memreport::serve::Request;

use crate::live::{self, Target};
use crate::ps::seconds;
use crate::show::Failure;

/// `about-memory ask`
#[derive(Debug, Args)]
pub struct AskArgs {
    /// A running program, by number or name: `about-memory ps` lists them
    #[arg(value_name = "PID|NAME")]
    program: Target,
    /// What to ask; without it, what can be asked is listed
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// What the command is told, as `options=--mode=live`
    #[arg(value_name = "NAME=VALUE", value_parser = argument)]
    arguments: Vec<(String, String)>,
    /// How many seconds the program may take to answer
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    patience: Duration,
}

/// `about-memory minimize`
#[derive(Debug, Args)]
pub struct MinimizeArgs {
    /// A running program, by number or name
    #[arg(value_name = "PID|NAME")]
    program: Target,
}

/// `about-memory track`
#[derive(Debug, Args)]
pub struct TrackArgs {
    /// A running program, by number or name
    #[arg(value_name = "PID|NAME")]
    program: Target,
    /// Enter no new blocks from now on
    #[arg(long, conflicts_with = "options")]
    stop: bool,
    /// What to track, in the words of `$DMD` [default: everything, with full stacks]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    options: Vec<String>,
}

fn argument(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as `name=value`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs `ask`.
///
/// # Errors
/// When the program cannot be asked or refuses, and those of `out`.
pub fn main(args: &AskArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let connection = live::choose(&args.program, args.patience)?;
    let Some(command) = &args.command else {
        for command in connection.status()?.commands {
            writeln!(out, "{:12} {}", command.name, command.description)?;
        }
        return Ok(());
    };
    let mut request = Request::new(command);
    request.arguments.extend(args.arguments.iter().cloned());
    for part in connection.ask(&request)? {
        out.write_all(&part.bytes)?;
        if part.bytes.last().is_some_and(|byte| *byte != b'\n')
            && std::str::from_utf8(&part.bytes).is_ok()
        {
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Runs `minimize`.
///
/// # Errors
/// As [`main`].
pub fn minimize(args: &MinimizeArgs, out: &mut dyn Write) -> Result<(), Failure> {
    say(&args.program, &Request::new("minimize"), out)
}

/// Runs `track`.
///
/// # Errors
/// As [`main`].
pub fn track(args: &TrackArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let request = match (args.stop, &args.options[..]) {
        (true, _) => Request::new("untrack"),
        (false, []) => Request::new("track"),
        (false, words) => Request::new("track").with("options", words.join(" ")),
    };
    say(&args.program, &request, out)
}

fn say(program: &Target, request: &Request, out: &mut dyn Write) -> Result<(), Failure> {
    for part in live::choose(program, Duration::from_secs(30))?.ask(request)? {
        writeln!(out, "{}", String::from_utf8_lossy(&part.bytes))?;
    }
    Ok(())
}
