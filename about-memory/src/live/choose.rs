//! A program, as a person names it: by its number or by its name.

use std::convert::Infallible;
use std::str::FromStr;
use std::time::Duration;

use super::{Connection, LiveError, find, program};

/// How long a program is waited for while names are compared.
const GLANCE: Duration = Duration::from_millis(500);

/// Which program is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The process of this number.
    Pid(u32),
    /// The one program of this name.
    Name(String),
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Target::Name(text.to_owned()), Target::Pid))
    }
}

/// The way to the program that is meant.
///
/// # Errors
/// When there is none, or several.
pub fn choose(target: &Target, patience: Duration) -> Result<Connection, LiveError> {
    let name = match target {
        Target::Pid(pid) => return Ok(Connection::new(program(*pid)?, patience)),
        Target::Name(name) => name,
    };
    let of_that_name: Vec<_> = find()
        .into_iter()
        .filter(|program| {
            let status = Connection::new(program.clone(), GLANCE).status();
            status.is_ok_and(|status| status.name == *name)
        })
        .collect();
    match &of_that_name[..] {
        [] => Err(LiveError::NoName(name.clone())),
        [program] => Ok(Connection::new(program.clone(), patience)),
        several => {
            let pids = several.iter().map(|program| program.pid).collect();
            Err(LiveError::ManyNames(name.clone(), pids))
        }
    }
}
