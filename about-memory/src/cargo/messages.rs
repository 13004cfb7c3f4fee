//! Reads the JSON messages of `cargo build`.

use serde::Deserialize;
use std::io::BufRead;
use std::path::PathBuf;

/// A file that cargo built and that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Built {
    /// The id of its package.
    pub(crate) package: String,
    pub(crate) target: String,
    /// The kind of its target: `bin`, `lib`, `test`.
    pub(crate) kind: String,
    /// True if it contains the tests of its target.
    pub(crate) is_test: bool,
    /// The source file of the target.
    pub(crate) source: PathBuf,
    pub(crate) file: PathBuf,
}

/// A message; other fields and other messages are ignored.
#[derive(Deserialize)]
struct WireMessage {
    reason: String,
    package_id: Option<String>,
    target: Option<WireTarget>,
    profile: Option<WireProfile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct WireTarget {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct WireProfile {
    test: bool,
}

/// Returns the programs of cargo's messages. Lines that are no messages are ignored: build scripts
/// and wrappers may print some.
pub(crate) fn read(messages: impl BufRead) -> std::io::Result<Vec<Built>> {
    let mut built = Vec::new();
    for line in messages.lines() {
        let line = line?;
        let Ok(message) = serde_json::from_str::<WireMessage>(&line) else { continue };
        if message.reason != "compiler-artifact" {
            continue;
        }
        let WireMessage { package_id, target, profile, executable, .. } = message;
        if let (Some(package), Some(target), Some(file)) = (package_id, target, executable) {
            built.push(Built {
                package,
                target: target.name,
                kind: target.kind.into_iter().next().unwrap_or_default(),
                is_test: profile.is_some_and(|profile| profile.test),
                source: target.src_path,
                file,
            });
        }
    }
    Ok(built)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_among_other_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","package_id":"p","target":{"kind":["lib"],"name":"l","src_path":"/l.rs"},"#,
            r#""profile":{"test":false},"executable":null,"fresh":true}"#,
            "\nwarning: printed by a wrapper\n",
            r#"{"reason":"build-script-executed","package_id":"p"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","package_id":"p","target":{"kind":["bin"],"name":"b","src_path":"/b.rs"},"#,
            r#""profile":{"test":true,"opt_level":"0"},"executable":"/t/b-1"}"#,
            "\n",
        );
        let expected = Built {
            package: "p".into(),
            target: "b".into(),
            kind: "bin".into(),
            is_test: true,
            source: "/b.rs".into(),
            file: "/t/b-1".into(),
        };
        assert_eq!(read(messages.as_bytes()).unwrap(), [expected]);
    }
}
