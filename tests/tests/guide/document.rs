//! A document: its command blocks, its code spans, its links and its headings.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace")
}

/// A Markdown file.
pub(crate) struct Document {
    /// The path below the root.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    text: String,
}

/// A fenced block of commands.
pub(crate) struct Block {
    /// The line of its fence, from 1.
    pub(crate) line: usize,
    /// The reason for which it cannot run in a test.
    pub(crate) not_run: Option<String>,
    pub(crate) commands: Vec<Command>,
}

/// A line that begins with `$ `, with the lines that continue it.
pub(crate) struct Command {
    pub(crate) text: String,
    /// The exit status that the document promises.
    pub(crate) status: i32,
}

/// Reads the Markdown files of these files and folders.
pub(crate) fn all(names: &[&str]) -> Vec<Document> {
    let mut paths = Vec::new();
    for name in names {
        markdown(&root().join(name), &mut paths);
    }
    paths.sort();
    paths.into_iter().map(Document::read).collect()
}

fn markdown(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("the folder is there").flatten() {
            markdown(&entry.path(), found);
        }
    } else if path.extension().is_some_and(|ending| ending == "md") {
        found.push(path.to_owned());
    }
}

impl Document {
    fn read(path: PathBuf) -> Self {
        let name = path.strip_prefix(root()).expect("below the root").display().to_string();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        Document { name, path, text }
    }

    /// Returns the blocks of commands.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Block> {
        let mut lines = self.text.lines().enumerate();
        std::iter::from_fn(move || {
            let (line, info) =
                lines.find_map(|(line, text)| Some((line, text.strip_prefix("```console")?)))?;
            let not_run = info.strip_prefix(",not-run:").map(|reason| reason.trim().to_owned());
            assert!(info.is_empty() || not_run.is_some(), "{}:{}: {info}", self.name, line + 1);
            let body = lines.by_ref().map(|(_, text)| text).take_while(|text| *text != "```");
            Some(Block { line: line + 1, not_run, commands: commands(body) })
        })
    }

    /// Returns the code spans of the text outside of blocks.
    pub(crate) fn spans(&self) -> Vec<String> {
        let text = self.prose().join(" ");
        text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// Returns the targets of links and pictures, except web addresses.
    pub(crate) fn links(&self) -> Vec<String> {
        let text = self.prose().join(" ");
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
    }

    /// Returns the lines outside of fenced blocks.
    fn prose(&self) -> Vec<&str> {
        let mut in_block = false;
        let mut is_prose = |line: &&str| {
            let is_fence = line.starts_with("```");
            in_block ^= is_fence;
            !in_block && !is_fence
        };
        self.text.lines().filter(|line| is_prose(line)).collect()
    }
}

fn commands<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut continues = false;
    for line in lines {
        let text = if continues { Some(line.trim()) } else { line.strip_prefix("$ ") };
        let Some(text) = text else { continue };
        let whole = text.strip_suffix('\\').unwrap_or(text);
        if continues {
            let last = found.last_mut().expect("a line before it");
            last.text.push_str(whole);
        } else {
            found.push(Command { text: whole.to_owned(), status: 0 });
        }
        continues = text.ends_with('\\');
    }
    for command in &mut found {
        let status = command.text.rsplit_once("# exit status ").map(|(_, status)| status.trim());
        command.status = status.map_or(0, |status| status.parse().expect("a number"));
    }
    found
}

/// Returns the anchors of a document's headings.
pub(crate) fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = text.lines().filter_map(|line| line.strip_prefix('#')?.split_once(' '));
    titles.map(|(_, title)| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    })
}

/// Returns the calls of `about-memory` in a command line: the words after the name, up to a pipe, a
/// comment or the program to start.
pub(crate) fn calls(command: &str) -> Vec<Vec<String>> {
    let command = command.split("  #").next().unwrap_or(command);
    let mut found = Vec::new();
    for part in command.split(['|', ';']).flat_map(|part| part.split("&&")) {
        let part = part.trim_end_matches('\\');
        let mut words = part.split_whitespace();
        if words.find(|word| !is_variable(word)) == Some("about-memory") {
            let words = words.take_while(|word| *word != "--");
            found.push(words.map(str::to_owned).collect());
        }
    }
    found
}

/// Reads all Rust files of the workspace.
pub(crate) fn sources() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(fs::read_to_string(path).expect("source is text"));
            }
        }
    }
    found
}

/// Returns whether a code span is a path of the repository, without a placeholder in it.
pub(crate) fn is_path(span: &str) -> bool {
    const FOLDERS: [&str; 7] = [
        "memreport/",
        "memreport-derive/",
        "dmd/",
        "dmd-analysis/",
        "about-memory/",
        "tests/",
        "xtask/",
    ];
    let is_placeholder = |part: &str| part.chars().all(|c| c.is_ascii_uppercase());
    FOLDERS.iter().any(|folder| span.starts_with(folder))
        && !span.split(['/', '.']).any(|part| !part.is_empty() && is_placeholder(part))
        && !span.contains(['*', ' '])
}

/// Returns the paths of `a/{b,c}.rs`.
pub(crate) fn expanded(span: &str) -> Vec<String> {
    let Some((before, rest)) = span.split_once('{') else { return vec![span.to_owned()] };
    let (choices, after) = rest.split_once('}').expect("a closing brace");
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

/// Returns the function of a code span that names a test: `models::a_slice_is_made_once`.
pub(crate) fn test_name(span: &str) -> Option<&str> {
    let name = span.rsplit("::").next()?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (is_name && !name.starts_with('_') && name.matches('_').count() >= 3).then_some(name)
}

/// Returns whether a word sets a variable of the environment: `DMD=1`.
fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}
