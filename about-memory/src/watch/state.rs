//! What the terminal shows, and what keys make of it. Nothing here knows a terminal or a socket.

use std::collections::HashSet;
use std::time::Instant;

use memreport::snapshot::read::Options;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::sheet::{self, Line};
use crate::filter::Filter;
use crate::open::{self, Opened};
use crate::page::Page;
use crate::show::Failure;
use crate::tree::Settings;

/// What a key asks of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Quit,
    Report,
    Minimize,
}

/// All that is shown.
pub(super) struct State {
    pub(super) program: String,
    /// The last report, and when it came.
    report: Vec<u8>,
    pub(super) came: Option<Instant>,
    /// The report that others are compared with.
    mark: Option<Vec<u8>>,
    pub(super) is_paused: bool,
    pub(super) is_typing: bool,
    pub(super) shows_help: bool,
    pub(super) filter: String,
    settings: Settings,
    turned: HashSet<String>,
    pub(super) lines: Vec<Line>,
    pub(super) notes: Vec<String>,
    /// The line that keys are about.
    pub(super) cursor: usize,
    /// The first line in sight, and how many there are; drawing sets both right.
    pub(super) top: usize,
    pub(super) height: usize,
    /// The last thing that happened, in words.
    pub(super) said: String,
}

impl State {
    pub(super) fn new(program: String) -> Self {
        State {
            program,
            report: Vec::new(),
            came: None,
            mark: None,
            is_paused: false,
            is_typing: false,
            shows_help: false,
            filter: String::new(),
            settings: Settings::default(),
            turned: HashSet::new(),
            lines: Vec::new(),
            notes: Vec::new(),
            cursor: 0,
            top: 0,
            height: 1,
            said: String::new(),
        }
    }

    /// A report came.
    pub(super) fn heard(&mut self, report: Vec<u8>) {
        if self.is_paused && self.came.is_some() {
            return;
        }
        self.report = report;
        self.came = Some(Instant::now());
        self.said.clear();
        self.lay_out();
    }

    /// Something is to be said.
    pub(super) fn say(&mut self, words: impl Into<String>) {
        self.said = words.into();
    }

    pub(super) fn is_marked(&self) -> bool {
        self.mark.is_some()
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.settings.is_verbose
    }

    pub(super) fn is_by_name(&self) -> bool {
        self.settings.by_name
    }

    /// A key was pressed.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Wish::Quit);
        }
        if self.is_typing {
            self.type_filter(key.code);
            return None;
        }
        if self.shows_help {
            self.shows_help = false;
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('r') => return Some(Wish::Report),
            KeyCode::Char('M') => return Some(Wish::Minimize),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('m') => self.turn_mark(),
            KeyCode::Char('v') => {
                self.change(|settings| settings.is_verbose = !settings.is_verbose);
            }
            KeyCode::Char('s') => self.change(|settings| settings.by_name = !settings.by_name),
            KeyCode::Esc if !self.filter.is_empty() => self.set_filter(String::new()),
            _ => self.move_or_fold(key.code),
        }
        None
    }

    fn move_or_fold(&mut self, code: KeyCode) {
        let page = self.height.saturating_sub(1).max(1);
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.go(self.cursor.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go(self.cursor + 1),
            KeyCode::PageUp => self.go(self.cursor.saturating_sub(page)),
            KeyCode::PageDown => self.go(self.cursor + page),
            KeyCode::Home | KeyCode::Char('g') => self.go(0),
            KeyCode::End | KeyCode::Char('G') => self.go(usize::MAX),
            KeyCode::Enter | KeyCode::Char(' ') => self.turn(),
            KeyCode::Right | KeyCode::Char('l') => {
                if self.line().is_some_and(|line| line.is_open) {
                    self.go(self.cursor + 1);
                } else {
                    self.turn();
                }
            }
            KeyCode::Left => {
                if self.line().is_some_and(|line| line.is_open) {
                    self.turn();
                } else {
                    self.go_to_parent();
                }
            }
            _ => {}
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        let mut filter = self.filter.clone();
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                filter.clear();
            }
            KeyCode::Backspace => _ = filter.pop(),
            KeyCode::Char(letter) => filter.push(letter),
            _ => {}
        }
        self.set_filter(filter);
    }

    fn set_filter(&mut self, filter: String) {
        if filter != self.filter {
            self.filter = filter;
            self.lay_out();
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        self.lay_out();
    }

    fn turn_mark(&mut self) {
        self.mark = if self.is_marked() { None } else { Some(self.report.clone()) };
        self.settings.is_diff = self.is_marked();
        self.lay_out();
    }

    fn line(&self) -> Option<&Line> {
        self.lines.get(self.cursor)
    }

    /// Folds or opens the line.
    fn turn(&mut self) {
        let Some(path) =
            self.line().filter(|line| line.has_kids).and_then(|line| line.path.clone())
        else {
            return;
        };
        if !self.turned.remove(&path) {
            self.turned.insert(path);
        }
        self.lay_out();
    }

    fn go_to_parent(&mut self) {
        let depth = self.line().map_or(0, |line| line.depth);
        let above = self
            .lines
            .iter()
            .take(self.cursor)
            .rposition(|line| line.path.is_some() && line.depth < depth);
        if let Some(parent) = above {
            self.go(parent);
        }
    }

    /// To this line, or the nearest one that is not a heading.
    fn go(&mut self, line: usize) {
        let line = line.min(self.lines.len().saturating_sub(1));
        let is_node = |place: &usize| self.lines[*place].path.is_some();
        let below = (line..self.lines.len()).find(is_node);
        let above = (0..line).rev().find(is_node);
        let found = if line >= self.cursor {
            below.or(above)
        } else {
            above.filter(|_| !is_node(&line)).or(below)
        };
        self.cursor = found.unwrap_or(0);
    }

    /// Makes the lines anew, and stays at the node where the cursor was.
    fn lay_out(&mut self) {
        let path = self.line().and_then(|line| line.path.clone());
        match self.read() {
            Ok((lines, notes)) => {
                self.lines = lines;
                self.notes = notes;
            }
            Err(error) => self.said = error.to_string(),
        }
        let same = self.lines.iter().position(|line| path.is_some() && line.path == path);
        match same {
            Some(line) => self.cursor = line,
            None => self.go(self.cursor),
        }
    }

    fn read(&self) -> Result<(Vec<Line>, Vec<String>), Failure> {
        let filter = Filter::text(&self.filter);
        let Opened { file, notes } = match &self.mark {
            None => {
                let from = (&*self.program, &self.report[..]);
                open::open_bytes(from, Options::default(), filter, &self.settings)?
            }
            Some(mark) => {
                let both = [&mark[..], &self.report[..]];
                open::open_two_bytes(&self.program, both, Options::default())?
                    .compare(filter, &self.settings)?
            }
        };
        let files = [file];
        let page = Page::new(&files, &self.settings);
        Ok((sheet::lines(&page, &self.turned)?, notes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(words: u64) -> Vec<u8> {
        let reports: Vec<_> =
            [("explicit/index/words", words), ("explicit/index/pages", 4_000_000)]
                .into_iter()
                .map(|(path, amount)| {
                    serde_json::json!({ "process": "p (pid 1)", "path": path, "kind": 1, "units": 0,
                                    "amount": amount, "description": "d" })
                })
                .collect();
        let file =
            serde_json::json!({ "version": 1, "hasMozMallocUsableSize": true, "reports": reports });
        file.to_string().into_bytes()
    }

    fn state() -> State {
        let mut state = State::new("p (pid 1)".into());
        state.heard(report(8_000_000));
        state
    }

    fn press(state: &mut State, keys: &str) {
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '<' => KeyCode::Left,
                other => KeyCode::Char(other),
            };
            state.key(code.into());
        }
    }

    fn text(state: &State) -> String {
        state.lines.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
    }

    #[test]
    fn a_node_can_be_folded_and_stays_so_when_a_report_comes() {
        let mut state = state();
        assert!(text(&state).contains("├───7.63 MB (66.67%) ── words"), "{}", text(&state));
        press(&mut state, "j ");
        assert!(text(&state).contains("++ index"), "{}", text(&state));
        assert!(!text(&state).contains("words"));
        state.heard(report(9_000_000));
        assert!(!text(&state).contains("words"), "{}", text(&state));
        assert_eq!(state.lines[state.cursor].path.as_deref(), Some("p (pid 1)/explicit/index"));
        press(&mut state, " ");
        assert!(text(&state).contains("8.58 MB (69.23%) ── words"), "{}", text(&state));
        press(&mut state, "jj<");
        assert_eq!(state.lines[state.cursor].path.as_deref(), Some("p (pid 1)/explicit/index"));
    }

    #[test]
    fn a_filter_leaves_what_it_names_and_goes_again() {
        let mut state = state();
        press(&mut state, "/words\n");
        assert!(
            text(&state).contains("words") && !text(&state).contains("pages"),
            "{}",
            text(&state)
        );
        press(&mut state, "\u{1b}");
        assert!(text(&state).contains("pages"));
    }

    #[test]
    fn a_mark_shows_what_has_changed_since() {
        let mut state = state();
        press(&mut state, "m");
        state.heard(report(9_048_576));
        assert!(text(&state).contains("1.00 MB (100.0%) ── index/words"), "{}", text(&state));
        assert!(!text(&state).contains("pages"));
        press(&mut state, "m");
        assert!(text(&state).contains("pages"));
    }

    #[test]
    fn verbose_pause_and_order_are_switches() {
        let mut state = state();
        press(&mut state, "v");
        assert!(text(&state).contains("8,000,000 B"));
        press(&mut state, "s");
        let sorted = text(&state);
        assert!(sorted.find("pages") < sorted.find("words"), "{sorted}");
        press(&mut state, "p");
        state.heard(report(1));
        assert!(text(&state).contains("8,000,000 B"), "paused");
        assert_eq!(state.key(KeyCode::Char('q').into()), Some(Wish::Quit));
    }
}
