//! The paths in one source file: its `use` lines and the paths in its code.

use crate::check::tidy::tokens::{Kind, Token, tokens};

/// A path as the file writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// Relative to the file's module, such as `["super", "table", "Block"]`.
    pub(crate) segments: Vec<String>,
    /// The name that a `use` gives it in this file.
    pub(crate) alias: Option<String>,
    pub(crate) line: usize,
}

/// The part of a file that imports depend on.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) paths: Vec<Path>,
    /// Names of macros that the file defines.
    pub(crate) macros: Vec<String>,
    /// Names of modules that the file declares for tests only.
    pub(crate) test_modules: Vec<String>,
    /// True if the whole file is for tests.
    pub(crate) is_test: bool,
}

/// Returns the paths of a file. Items under `#[cfg(test)]` or `#[test]` do not count.
pub(crate) fn paths(text: &str) -> Paths {
    let mut code = tokens(text);
    code.retain(|token| token.kind != Kind::Comment);
    let mut reader =
        Reader { code: &code, at: 0, depth: 0, inline: Vec::new(), found: Paths::default() };
    while reader.at < reader.code.len() {
        reader.step();
    }
    reader.found
}

struct Reader<'text> {
    code: &'text [Token<'text>],
    at: usize,
    /// Number of open braces.
    depth: usize,
    /// The inline modules around the current place, by the depth outside of them.
    inline: Vec<usize>,
    found: Paths,
}

impl<'text> Reader<'text> {
    /// Returns the text of a token at a distance from the current one.
    fn peek(&self, distance: usize) -> &'text str {
        self.code.get(self.at + distance).map_or("", |token| token.text)
    }

    /// Returns the text of a token before the current one.
    fn before(&self, distance: usize) -> &'text str {
        self.at.checked_sub(distance).map_or("", |at| self.code[at].text)
    }

    fn step(&mut self) {
        match self.peek(0) {
            "#" => return self.attribute(),
            "use" if self.peek(1) != "<" => return self.import(),
            "mod" if self.peek(2) == "{" => self.inline.push(self.depth),
            "macro_rules" => self.found.macros.push(self.peek(2).to_owned()),
            "{" => self.depth += 1,
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                self.inline.pop_if(|depth| *depth == self.depth);
            }
            _ if self.peek(1) == "::" && self.code[self.at].kind == Kind::Word => {
                return self.inline_path();
            }
            _ => {}
        }
        self.at += 1;
    }

    /// Reads an attribute, and skips the item behind it if that is for tests.
    fn attribute(&mut self) {
        let is_inner = self.peek(1) == "!";
        let start = self.at + 1 + usize::from(is_inner);
        self.at = start;
        if self.peek(0) != "[" {
            return;
        }
        self.skip_group();
        let words: Vec<&str> = self.code[start..self.at].iter().map(|token| token.text).collect();
        match (requires_test(&words), is_inner) {
            (true, true) => self.found.is_test = true,
            (true, false) => self.skip_item(),
            _ => {}
        }
    }

    /// Skips a bracket and everything up to its partner.
    fn skip_group(&mut self) {
        let mut depth = 0;
        while self.at < self.code.len() {
            match self.peek(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips an item with its attributes; notes the name of a module in a file of its own.
    fn skip_item(&mut self) {
        while self.at < self.code.len() {
            match self.peek(0) {
                "mod" if self.peek(2) == ";" => {
                    self.found.test_modules.push(self.peek(1).to_owned());
                    self.at += 1;
                }
                "(" | "[" => self.skip_group(),
                "{" => return self.skip_group(),
                ";" | "," => {
                    self.at += 1;
                    return;
                }
                // The end of the block that holds the item.
                ")" | "]" | "}" => return,
                _ => self.at += 1,
            }
        }
    }

    /// Reads a `use` with its nested braces.
    fn import(&mut self) {
        self.at += 1;
        self.tree(&[]);
    }

    fn tree(&mut self, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        let line = self.code.get(self.at).map_or(0, |token| token.line);
        loop {
            match self.peek(0) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.peek(0), "}" | "") {
                        self.tree(&segments);
                        self.at += usize::from(self.peek(0) == ",");
                    }
                    self.at += 1;
                    return;
                }
                "::" => {}
                "*" => {
                    self.at += 1;
                    return self.add(segments, None, line);
                }
                "self" if !segments.is_empty() => {}
                word => segments.push(word.to_owned()),
            }
            self.at += 1;
            if self.peek(0) != "::" && self.before(1) != "::" {
                break;
            }
        }
        let mut alias = segments.last().cloned();
        if self.peek(0) == "as" {
            alias = Some(self.peek(1).to_owned());
            self.at += 2;
        }
        self.add(segments, alias, line);
    }

    fn inline_path(&mut self) {
        let line = self.code[self.at].line;
        let is_visibility = self.before(1) == "in" && self.before(3) == "pub";
        // A macro's user reaches the item through the crate's root.
        let is_of_macro = self.before(1) == "$";
        let mut segments = vec![self.peek(0).to_owned()];
        self.at += 1;
        while self.peek(0) == "::"
            && self.code.get(self.at + 1).is_some_and(|token| token.kind == Kind::Word)
        {
            segments.push(self.peek(1).to_owned());
            self.at += 2;
        }
        if self.peek(0) == "::" {
            self.at += 1;
        }
        if !is_visibility && !is_of_macro {
            self.add(segments, None, line);
        }
    }

    /// Adds a path, made relative to the file's module.
    fn add(&mut self, mut segments: Vec<String>, alias: Option<String>, line: usize) {
        if !self.inline.is_empty() && matches!(segments[0].as_str(), "self" | "super") {
            let is_super = |segment: &&String| *segment == "super";
            let supers = segments.iter().take_while(is_super).count();
            // The path stays in this file.
            if supers < self.inline.len() + usize::from(segments.len() == supers) {
                return;
            }
            segments.drain(..self.inline.len());
            if supers == self.inline.len() {
                segments.insert(0, "self".to_owned());
            }
        }
        // A name from inside an inline module is no name of the file.
        let alias = alias.filter(|_| self.inline.is_empty());
        self.found.paths.push(Path { segments, alias, line });
    }
}

/// Returns whether an attribute is `#[test]`, or a `#[cfg]` that holds only in tests.
fn requires_test(attribute: &[&str]) -> bool {
    let mut open = Vec::new();
    for pair in attribute.windows(2) {
        match *pair {
            ["[", "test"] => return true,
            [name, "("] => open.push(name),
            [_, ")"] => drop(open.pop()),
            [_, "test"] if !open.is_empty() => {
                return open[0] == "cfg" && open[1..].iter().all(|name| *name == "all");
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let show = |path: &Path| {
            let alias = path.alias.as_ref().map(|alias| format!(" as {alias}")).unwrap_or_default();
            format!("{}{alias}", path.segments.join("::"))
        };
        paths(text).paths.iter().map(show).collect()
    }

    #[test]
    fn paths_are_found() {
        for (text, expected) in [
            (
                "use crate::a::{self, b::{C, D as E}};",
                "crate::a as a, crate::a::b::C as C, crate::a::b::D as E",
            ),
            ("pub(crate) use super::a::*;", "super::a"),
            ("fn f() { crate::a::g::<u8>() }", "crate::a::g"),
            ("pub(in crate::a) struct A(super::B);", "super::B"),
            ("impl crate::A for <b::C as D>::E {}", "crate::A, b::C"),
            ("#[cfg(test)] mod tests { use crate::a; } use crate::b;", "crate::b as b"),
            ("#[cfg(not(test))] use crate::a;", "crate::a as a"),
            ("#[cfg(any(test, unix))] use crate::a;", "crate::a as a"),
            ("#[cfg(all(any(unix), test))] use crate::a;", ""),
            ("#[cfg_attr(test, ignore)] use crate::a;", "crate::a as a"),
            ("#[cfg(all(loom, test))]\nuse crate::{a, b}; use c::D;", "c::D as D"),
            ("struct A { #[cfg(test)] a: crate::B, c: crate::D }", "crate::D"),
            (
                "mod m { use super::a::B; use super::super::c; self::d::e(); } use x::y;",
                "self::a::B, super::c, x::y as y",
            ),
            ("macro_rules! m { () => { $crate::a!() } }", ""),
            ("fn f() -> impl A + use<'_> { \"crate::a\"; 'x' } // crate::b", ""),
        ] {
            assert_eq!(found(text).join(", "), expected, "{text}");
        }
    }

    #[test]
    fn modules_and_files_of_tests_are_noted() {
        assert_eq!(paths("#[cfg(test)]\nmod models;\nmod a;").test_modules, ["models"]);
        assert!(paths("//! A.\n#![cfg(test)]\n").is_test);
        assert_eq!(paths("macro_rules! owns { () => {} }").macros, ["owns"]);
    }
}
