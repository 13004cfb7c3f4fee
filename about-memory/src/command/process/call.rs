//! `about-memory call PROGRAM COMMAND`: sends a command to a running program.

use crate::command::flags::{candidates, seconds};
use crate::context::Context;
use crate::error::Failure;
use crate::input::live::{self, Target};
use clap::Args;
use memreport::serve::Request;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// `about-memory call`
#[derive(Debug, Args)]
pub struct CallArgs {
    /// A running program, by pid or name; see `about-memory ps`
    #[arg(value_name = "PID|NAME", add = candidates::programs())]
    program: Target,
    /// The command to send; without it, list the commands
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// An argument of the command, as `options=--mode=live`
    #[arg(value_name = "NAME=VALUE", value_parser = argument)]
    arguments: Vec<(String, String)>,
    /// Wait at most this long for an answer
    #[arg(long, alias = "patience", value_name = "TIME", default_value = "30", value_parser = seconds)]
    timeout: Duration,
}

fn argument(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as `name=value`")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl CallArgs {
    /// Prints the answer, or the list of commands if none is given.
    ///
    /// # Errors
    /// The program cannot be asked or refuses, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let connection = live::choose(&self.program, self.timeout)?;
        let Some(command) = &self.command else {
            for command in connection.status()?.commands {
                writeln!(context.out, "{:12} {}", command.name, command.description)?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        let mut request = Request::new(command);
        request.arguments.extend(self.arguments);
        for part in connection.ask(&request)? {
            context.out.machine_bytes().write_all(&part.bytes)?;
            if part.bytes.last().is_some_and(|byte| *byte != b'\n')
                && std::str::from_utf8(&part.bytes).is_ok()
            {
                writeln!(context.out)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Sends a request and prints each part of the answer as text.
pub(super) fn print_answer(
    program: &Target,
    request: &Request,
    context: &mut Context<'_>,
) -> Result<ExitCode, Failure> {
    for part in live::choose(program, live::DEFAULT_TIMEOUT)?.ask(request)? {
        writeln!(context.out, "{}", String::from_utf8_lossy(&part.bytes))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::argument;

    #[test]
    fn an_argument_is_a_name_and_a_value() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(argument("options=--mode=live"), pair("options", "--mode=live"));
        assert_eq!(argument("path="), pair("path", ""));
        assert_eq!(argument("path"), Err("write it as `name=value`".to_owned()));
    }
}
