//! What goes over the socket: one line that asks, one line that answers, and the bytes that it announces.
//!
//! Both lines are JSON. `{"command":"report","arguments":{"dump":"yes"}}` is answered by
//! `{"ok":[{"name":"report","bytes":4821}]}` and 4,821 bytes, or by `{"error":"…"}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of this protocol. Commands and arguments may be added without a new one.
pub const VERSION: u32 = 1;

/// The longest line that asks, in bytes.
pub const LONGEST_REQUEST: usize = 4096;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Which command: `report`.
    pub command: String,
    /// What it is told, by name.
    pub arguments: BTreeMap<String, String>,
}

impl Request {
    /// Of a command that is told nothing yet.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Request { command: command.into(), arguments: BTreeMap::new() }
    }

    /// With an argument more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments.insert(name.into(), value.into());
        self
    }

    /// The argument of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).map(String::as_str)
    }

    /// Whether the argument of this name is `yes`.
    #[must_use]
    pub fn is_yes(&self, name: &str) -> bool {
        self.get(name) == Some("yes")
    }

    /// The line that asks, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        let wire = WireRequest { command: self.command.clone(), arguments: self.arguments.clone() };
        // Maps of strings have no way to fail.
        serde_json::to_string(&wire).unwrap_or_default() + "\n"
    }

    /// Reads a line, without its end.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let wire: WireRequest = serde_json::from_slice(line).map_err(|error| {
            format!(
                "not understood ({error}); a request is a line such as {{\"command\":\"report\"}}"
            )
        })?;
        Ok(Request { command: wire.command, arguments: wire.arguments })
    }
}

/// A named piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is: `report`.
    pub name: String,
    /// The piece itself.
    pub bytes: Vec<u8>,
}

/// The line that answers: what follows it, or why nothing does.
pub type Header = Result<Vec<(String, usize)>, String>;

/// The line that answers, with its end.
#[must_use]
pub fn header(answer: &Result<Vec<Part>, String>) -> String {
    let wire = match answer {
        Ok(parts) => WireAnswer {
            ok: Some(
                parts
                    .iter()
                    .map(|part| WirePart { name: part.name.clone(), bytes: part.bytes.len() })
                    .collect(),
            ),
            error: None,
        },
        Err(message) => WireAnswer { ok: None, error: Some(message.clone()) },
    };
    serde_json::to_string(&wire).unwrap_or_default() + "\n"
}

/// Reads the line that answers, without its end.
///
/// # Errors
///
/// Says what is wrong with it.
pub fn parse_header(line: &[u8]) -> Result<Header, String> {
    let wire: WireAnswer = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match (wire.ok, wire.error) {
        (Some(parts), None) => {
            Ok(Ok(parts.into_iter().map(|part| (part.name, part.bytes)).collect()))
        }
        (None, Some(message)) => Ok(Err(message)),
        _ => Err("neither an answer nor an error".into()),
    }
}

/// What a program says of itself at once, without a collection.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Which protocol it speaks.
    pub protocol: u32,
    /// Its process, as it knows itself: a container may know it by another number.
    pub pid: u32,
    /// What it is called.
    pub name: String,
    /// What it can be asked.
    pub commands: Vec<Command>,
    /// What its allocator tracks, or why it does not.
    pub tracking: String,
    /// Bytes in live blocks, where an allocator is declared.
    pub heap_allocated: Option<u64>,
    /// Live blocks, likewise.
    pub heap_blocks: Option<u64>,
    /// Bytes in physical memory.
    pub resident: Option<u64>,
    /// What became of the reports that it saves by itself, a sentence for each folder.
    #[serde(default)]
    pub saved: Vec<String>,
}

/// Something that a program can be asked.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Command {
    /// The word.
    pub name: String,
    /// One sentence for people.
    pub description: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireRequest {
    command: String,
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

#[derive(Deserialize, Serialize)]
struct WireAnswer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ok: Option<Vec<WirePart>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct WirePart {
    name: String,
    bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_arrives_as_it_was_said() {
        let asked = Request::new("track").with("options", "--mode=profile \"a\"\nb é");
        let line = asked.line();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(Request::parse(line.trim_end().as_bytes()), Ok(asked));
        assert_eq!(Request::parse(br#"{"command":"report"}"#), Ok(Request::new("report")));
        for bad in ["", "report", "{}", "[]", r#"{"command":1}"#, r#"{"command":"a","b":1}"#] {
            assert!(Request::parse(bad.as_bytes()).unwrap_err().contains("a request is"), "{bad}");
        }
    }

    #[test]
    fn an_answer_says_what_follows_it() {
        let parts = vec![Part { name: "report".into(), bytes: vec![1, 2, 3] }];
        let line = header(&Ok(parts));
        assert_eq!(line, "{\"ok\":[{\"name\":\"report\",\"bytes\":3}]}\n");
        assert_eq!(parse_header(line.as_bytes()), Ok(Ok(vec![("report".into(), 3)])));
        let line = header(&Err("a\nb".into()));
        assert_eq!(parse_header(line.trim_end().as_bytes()), Ok(Err("a\nb".into())));
        assert!(parse_header(b"{}").is_err());
    }
}
