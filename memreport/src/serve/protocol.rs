//! Defines the protocol of the socket: a request line, an answer line, and the bytes that it
//! announces.
//!
//! Both lines are JSON. `{"command":"report","arguments":{"dump":"yes"}}` is answered by
//! `{"ok":[{"name":"report","bytes":4821}]}` and 4,821 bytes, or by `{"error":"…"}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of this protocol. New commands and arguments do not change it.
pub const VERSION: u32 = 1;

/// The most bytes of a request line.
pub const LONGEST_REQUEST: usize = 4096;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The command's name, such as `report`.
    pub command: String,
    /// The arguments by name.
    pub arguments: BTreeMap<String, String>,
}

impl Request {
    /// Creates a request without arguments.
    #[must_use]
    pub fn new(command: impl Into<String>) -> Self {
        Request { command: command.into(), arguments: BTreeMap::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments.insert(name.into(), value.into());
        self
    }

    /// Returns the argument with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).map(String::as_str)
    }

    /// Returns whether the argument with this name is `yes`.
    #[must_use]
    pub fn is_yes(&self, name: &str) -> bool {
        self.get(name) == Some("yes")
    }

    /// Returns the request line, with its line end.
    #[must_use]
    pub fn line(&self) -> String {
        let wire = WireRequest { command: self.command.clone(), arguments: self.arguments.clone() };
        // Maps of strings always serialize.
        serde_json::to_string(&wire).unwrap_or_default() + "\n"
    }

    /// Parses a request line without its end.
    ///
    /// # Errors
    ///
    /// Returns a sentence that describes the defect.
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
    /// The name, such as `report`.
    pub name: String,
    /// The contents.
    pub bytes: Vec<u8>,
}

/// The answer line: the names and lengths of the pieces that follow, or the reason for a failure.
pub type Header = Result<Vec<(String, usize)>, String>;

/// Returns the answer line, with its line end.
#[must_use]
pub fn header(answer: &Result<Vec<Part>, String>) -> String {
    let length = |part: &Part| (part.name.clone(), part.bytes.len());
    encode(answer.as_ref().map(|parts| parts.iter().map(length).collect()).map_err(String::clone))
}

/// Returns an answer line, with its line end.
pub(super) fn encode(header: Header) -> String {
    let wire = match header {
        Ok(parts) => {
            let parts = parts.into_iter().map(|(name, bytes)| WirePart { name, bytes });
            WireAnswer { ok: Some(parts.collect()), error: None }
        }
        Err(message) => WireAnswer { ok: None, error: Some(message) },
    };
    serde_json::to_string(&wire).unwrap_or_default() + "\n"
}

/// Parses an answer line without its end.
///
/// # Errors
///
/// Returns a sentence that describes the defect.
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

/// The status of a program, available without a collection.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The version of the protocol.
    pub protocol: u32,
    /// The process number within the program's own namespace. A container's host may use another
    /// one.
    pub pid: u32,
    /// The program's name.
    pub name: String,
    /// The commands of the program.
    pub commands: Vec<Command>,
    /// The state of the allocator's tracking, or the reason why it does not track.
    pub tracking: String,
    /// Usable bytes in live blocks, if an allocator is declared.
    pub heap_allocated: Option<u64>,
    /// Live blocks, if an allocator is declared.
    pub heap_blocks: Option<u64>,
    /// Bytes in physical memory.
    pub resident: Option<u64>,
    /// The results of saving reports automatically, one sentence for each folder.
    #[serde(default)]
    pub saved: Vec<String>,
}

/// A command of a program.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Command {
    /// The name.
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
