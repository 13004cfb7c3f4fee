//! The files that may read the environment: one gate for each library.
//!
//! A gate ignores every variable in programs with more privileges than their starter.

use super::files::Workspace;
use super::outcome::Outcome;
use super::tokens::{Kind, Token, tokens};

/// The libraries that run inside other people's programs, or read their files.
const LIBRARIES: [&str; 4] = ["memreport", "memreport-derive", "dmd", "dmd-analysis"];

/// The files that may read the environment, sorted.
const GATES: [&str; 2] = ["dmd/src/mem/sys/environment.rs", "memreport/src/process/environment.rs"];

/// Functions that read the environment: those of std behind `env::`, and those of C.
const OF_STD: [&str; 5] = ["var", "var_os", "vars", "vars_os", "temp_dir"];
const OF_C: [&str; 3] = ["getenv", "secure_getenv", "environ"];

/// Checks that no library reads the environment outside its gate. Tests do not count.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut offenders = Vec::new();
    let mut used = Vec::new();
    for name in LIBRARIES {
        let folder = format!("{name}/src");
        for source in workspace.below(&folder).filter(|source| !source.is_test()) {
            for token in reads(&source.text) {
                if GATES.contains(&source.path.as_str()) {
                    used.push(source.path.as_str());
                } else {
                    offenders.push(format!("{}:{}: {}", source.path, token.line, token.text));
                }
            }
        }
    }
    let unused = GATES.iter().filter(|gate| !used.contains(gate));
    offenders.extend(unused.map(|gate| format!("{gate}: is listed and reads nothing")));
    Outcome::none_of(offenders).with_summary(format!("{} gates", GATES.len()))
}

/// Returns the names of functions that read the environment, up to the tests at the end of a file.
fn reads(text: &str) -> Vec<Token<'_>> {
    let mut code = tokens(text);
    code.retain(|token| token.kind != Kind::Comment);
    let is_tests = |window: &[Token<'_>]| {
        let words: Vec<&str> = window.iter().map(|token| token.text).collect();
        words.first() == Some(&"cfg") && words.contains(&"test") && words.ends_with(&["mod"])
    };
    // `#[cfg(test)] mod`, or `#[cfg(all(test, unix))] mod`.
    let starts = [6, 11].iter().filter_map(|length| code.windows(*length).position(is_tests));
    code.truncate(starts.min().unwrap_or(code.len()));
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| code[at].text);
        let is_of_std = OF_STD.contains(&token.text) && before(1) == "::" && before(2) == "env";
        if is_of_std || OF_C.contains(&token.text) {
            found.push(*token);
        }
    }
    // A function that is imported by name is called without `env::`.
    let imports = code.windows(3).filter(|words| {
        words[0].text == "env" && words[1].text == "::" && matches!(words[2].text, "{" | "*")
    });
    found.extend(imports.map(|words| words[2]));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_outside_the_gates_is_seen() {
        let gates = GATES.map(|gate| (gate, "fn a() { env::var_os(name) }"));
        let with = |path: &str, text: &str| {
            let files: Vec<_> = gates.iter().copied().chain([(path, text)]).collect();
            check(&Workspace::of(&files)).offenders
        };
        for (path, text, expected) in [
            ("dmd/src/a.rs", "fn a() {\n std::env::var(\"A\") }", "dmd/src/a.rs:2: var"),
            ("dmd/src/a.rs", "unsafe { libc::getenv(name) }", "dmd/src/a.rs:1: getenv"),
            ("memreport/src/a.rs", "env::temp_dir()", "memreport/src/a.rs:1: temp_dir"),
            ("memreport/src/a.rs", "use std::env::{args, var};", "memreport/src/a.rs:1: {"),
            ("dmd/src/a.rs", "env::current_exe(); // env::var", ""),
            ("dmd/src/a.rs", "#[cfg(test)]\nmod tests { env::var(x) }", ""),
            ("dmd/src/a.rs", "#[cfg(all(test, unix))]\nmod tests { env::var(x) }", ""),
            ("about-memory/src/a.rs", "env::var(x)", ""),
            ("dmd/src/a/tests.rs", "env::var(x)", ""),
        ] {
            assert_eq!(with(path, text).join("; "), expected, "{path}: {text}");
        }
        let none = check(&Workspace::of(&[(GATES[0], "env::var(x)")])).offenders;
        assert_eq!(none, [format!("{}: is listed and reads nothing", GATES[1])]);
    }
}
