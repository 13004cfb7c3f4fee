//! Holds the state of the terminal view, and changes it when a key is pressed. Uses neither
//! terminal nor socket.

use crate::error::Failure;
use crate::input::open::{self, NamedBytes};
use crate::render::terminal::lines::{self, Line};
use crate::render::terminal::screen::Screen;
use crate::report::filter::Filter;
use crate::report::page::Page;
use crate::report::page::file_builder::Opened;
use crate::report::tree::Settings;
use memreport::snapshot::read::Options;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::HashSet;
use std::time::Instant;

/// A request that a key makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserAction {
    Quit,
    Report,
    Minimize,
}

/// The state of the view: the screen and what it is made from.
pub(super) struct State {
    pub(super) screen: Screen,
    /// The last report.
    report: Vec<u8>,
    /// The report that others are compared with.
    mark: Option<Vec<u8>>,
    settings: Settings,
    /// The nodes that keys folded or opened.
    turned: HashSet<String>,
}

impl State {
    pub(super) fn new(program: String) -> Self {
        State {
            screen: Screen { program, height: 1, ..Screen::default() },
            report: Vec::new(),
            mark: None,
            settings: Settings::default(),
            turned: HashSet::new(),
        }
    }

    /// Takes a new report.
    pub(super) fn receive(&mut self, report: Vec<u8>) {
        if self.screen.is_paused && self.screen.received.is_some() {
            return;
        }
        self.report = report;
        self.screen.received = Some(Instant::now());
        self.screen.message.clear();
        self.lay_out();
    }

    /// Shows a message in the last line.
    pub(super) fn show_message(&mut self, words: impl Into<String>) {
        self.screen.message = words.into();
    }

    /// Handles a key that is pressed. Returns the request that it makes, if any.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<UserAction> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(UserAction::Quit);
        }
        if self.screen.is_typing {
            self.type_filter(key.code);
            return None;
        }
        if self.screen.shows_help {
            self.screen.shows_help = false;
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(UserAction::Quit),
            KeyCode::Char('r') => return Some(UserAction::Report),
            KeyCode::Char('M') => return Some(UserAction::Minimize),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.screen.shows_help = true,
            KeyCode::Char('/') => self.screen.is_typing = true,
            KeyCode::Char('p') => self.screen.is_paused = !self.screen.is_paused,
            KeyCode::Char('m') => self.turn_mark(),
            KeyCode::Char('v') => {
                self.change(|settings| settings.is_verbose = !settings.is_verbose);
            }
            KeyCode::Char('s') => self.change(|settings| settings.by_name = !settings.by_name),
            KeyCode::Esc if !self.screen.filter.is_empty() => self.set_filter(String::new()),
            _ => self.move_or_fold(key.code),
        }
        None
    }

    fn move_or_fold(&mut self, code: KeyCode) {
        let page = self.screen.height.saturating_sub(1).max(1);
        match code {
            KeyCode::Up | KeyCode::Char('k') => self.go(self.screen.cursor.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go(self.screen.cursor + 1),
            KeyCode::PageUp => self.go(self.screen.cursor.saturating_sub(page)),
            KeyCode::PageDown => self.go(self.screen.cursor + page),
            KeyCode::Home | KeyCode::Char('g') => self.go(0),
            KeyCode::End | KeyCode::Char('G') => self.go(usize::MAX),
            KeyCode::Enter | KeyCode::Char(' ') => self.turn(),
            KeyCode::Right | KeyCode::Char('l') => {
                if self.line().is_some_and(|line| line.is_open) {
                    self.go(self.screen.cursor + 1);
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
        let mut filter = self.screen.filter.clone();
        match code {
            KeyCode::Enter => self.screen.is_typing = false,
            KeyCode::Esc => {
                self.screen.is_typing = false;
                filter.clear();
            }
            KeyCode::Backspace => _ = filter.pop(),
            KeyCode::Char(letter) => filter.push(letter),
            _ => {}
        }
        self.set_filter(filter);
    }

    fn set_filter(&mut self, filter: String) {
        if filter != self.screen.filter {
            self.screen.filter = filter;
            self.lay_out();
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        self.lay_out();
    }

    fn turn_mark(&mut self) {
        self.mark = if self.mark.is_some() { None } else { Some(self.report.clone()) };
        self.settings.is_diff = self.mark.is_some();
        self.lay_out();
    }

    fn line(&self) -> Option<&Line> {
        self.screen.lines.get(self.screen.cursor)
    }

    /// Folds or opens the node at the cursor.
    fn turn(&mut self) {
        let Some(path) =
            self.line().filter(|line| line.has_children).and_then(|line| line.path.clone())
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
            .screen
            .lines
            .iter()
            .take(self.screen.cursor)
            .rposition(|line| line.path.is_some() && line.depth < depth);
        if let Some(parent) = above {
            self.go(parent);
        }
    }

    /// Moves the cursor to this line, or to the nearest one that is not a heading.
    fn go(&mut self, line: usize) {
        let line = line.min(self.screen.lines.len().saturating_sub(1));
        let is_node = |place: &usize| self.screen.lines[*place].path.is_some();
        let below = (line..self.screen.lines.len()).find(is_node);
        let above = (0..line).rev().find(is_node);
        let found = if line >= self.screen.cursor {
            below.or(above)
        } else {
            above.filter(|_| !is_node(&line)).or(below)
        };
        self.screen.cursor = found.unwrap_or(0);
    }

    /// Builds the lines again, and keeps the cursor at its node.
    fn lay_out(&mut self) {
        let path = self.line().and_then(|line| line.path.clone());
        self.screen.is_marked = self.mark.is_some();
        self.screen.is_verbose = self.settings.is_verbose;
        self.screen.is_by_name = self.settings.by_name;
        match self.read() {
            Ok((lines, notes)) => {
                self.screen.lines = lines;
                self.screen.notes = notes;
            }
            Err(error) => self.screen.message = error.to_string(),
        }
        let same = self.screen.lines.iter().position(|line| path.is_some() && line.path == path);
        match same {
            Some(line) => self.screen.cursor = line,
            None => self.go(self.screen.cursor),
        }
    }

    fn read(&self) -> Result<(Vec<Line>, Vec<String>), Failure> {
        let filter = Filter::text(&self.screen.filter);
        let Opened { file, notes, .. } = match &self.mark {
            None => {
                let from = NamedBytes { name: &self.screen.program, bytes: &self.report };
                open::open_bytes(from, Options::default(), filter, &self.settings)?
            }
            Some(mark) => {
                let both = [&mark[..], &self.report]
                    .map(|bytes| NamedBytes { name: &self.screen.program, bytes });
                open::open_two_bytes(both, Options::default())?.compare(filter, &self.settings)?
            }
        };
        let files = [file];
        let page = Page::new(&files, &self.settings);
        Ok((lines::lines(&page, &self.turned)?, notes))
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
        state.receive(report(8_000_000));
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
        state.screen.lines.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
    }

    #[test]
    fn a_node_can_be_folded_and_stays_so_when_a_report_comes() {
        let mut state = state();
        assert!(text(&state).contains("├───7.63 MB (66.67%) ── words"), "{}", text(&state));
        press(&mut state, "j ");
        assert!(text(&state).contains("++ index"), "{}", text(&state));
        assert!(!text(&state).contains("words"));
        state.receive(report(9_000_000));
        assert!(!text(&state).contains("words"), "{}", text(&state));
        assert_eq!(
            state.screen.lines[state.screen.cursor].path.as_deref(),
            Some("p (pid 1)/explicit/index")
        );
        press(&mut state, " ");
        assert!(text(&state).contains("8.58 MB (69.23%) ── words"), "{}", text(&state));
        press(&mut state, "jj<");
        assert_eq!(
            state.screen.lines[state.screen.cursor].path.as_deref(),
            Some("p (pid 1)/explicit/index")
        );
    }

    /// Returns the text of the line at the cursor.
    fn current(state: &State) -> &str {
        state.line().map_or("", |line| line.text.trim())
    }

    #[test]
    fn keys_move_over_the_nodes_and_not_beyond() {
        let mut state = state();
        let nodes: Vec<usize> = (0..state.screen.lines.len())
            .filter(|line| state.screen.lines[*line].path.is_some())
            .collect();
        let [first, second, .., last] = nodes[..] else { panic!("{}", text(&state)) };
        state.screen.height = 2;
        for (code, line) in [
            (KeyCode::End, last),
            (KeyCode::Down, last),
            (KeyCode::Home, first),
            (KeyCode::Up, first),
            (KeyCode::Char('j'), second),
            (KeyCode::Char('k'), first),
            (KeyCode::Char('G'), last),
            (KeyCode::Char('g'), first),
            (KeyCode::PageDown, second),
            (KeyCode::PageUp, first),
            // Opens nothing that is open: goes to the first child.
            (KeyCode::Right, second),
            (KeyCode::Char('x'), second),
        ] {
            state.key(code.into());
            assert_eq!(state.screen.cursor, line, "{code:?}: {}", text(&state));
        }
        press(&mut state, "<");
        assert!(current(&state).contains("++"), "{}", current(&state));
        press(&mut state, "l");
        assert!(current(&state).contains("--"), "{}", current(&state));
        press(&mut state, "<<");
        assert_eq!(state.screen.cursor, first);
    }

    #[test]
    fn what_is_gathered_is_not_gathered_once_more_when_it_is_opened() {
        let paths: Vec<String> = (0..18).map(|number| format!("explicit/{number}")).collect();
        let report = |path: &str, amount: u64| {
            serde_json::json!({ "process": "p (pid 1)", "path": path, "kind": 1, "units": 0,
                                "amount": amount, "description": "d" })
        };
        let mut reports = vec![report("explicit/large", 100_000)];
        reports.extend(["explicit/x", "explicit/y"].map(|path| report(path, 1)));
        reports.extend(paths.iter().map(|path| report(path, 2)));
        let file = serde_json::json!({ "version": 1, "hasMozMallocUsableSize": true,
                "memreport": { "version": 1, "reporters": paths }, "reports": reports });
        let mut state = State::new("p (pid 1)".into());
        state.receive(file.to_string().into_bytes());
        let is_gathered = |line: &Line| line.text.contains("(4 tiny)");
        let place = state.screen.lines.iter().position(is_gathered);
        state.go(place.unwrap_or_else(|| panic!("{}", text(&state))));
        state.key(KeyCode::Enter.into());
        let text = text(&state);
        assert!(text.contains("── x\n") && text.contains("── 9\n"), "{text}");
        assert_eq!(text.matches(" tiny)").count(), 1, "{text}");
    }

    #[test]
    fn help_goes_with_any_key_and_control_c_always_quits() {
        let mut state = state();
        for key in [KeyCode::Char('?'), KeyCode::Char('h'), KeyCode::F(1)] {
            state.key(key.into());
            assert!(state.screen.shows_help);
            assert_eq!(state.key(KeyCode::Char('q').into()), None);
            assert!(!state.screen.shows_help);
        }
        press(&mut state, "/r");
        assert_eq!(state.screen.filter, "r");
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.key(interrupt), Some(UserAction::Quit));
        let released = KeyEvent { kind: KeyEventKind::Release, ..interrupt };
        assert_eq!(state.key(released), None);
        state.key(KeyCode::Backspace.into());
        press(&mut state, "\n");
        assert_eq!(state.key(KeyCode::Char('r').into()), Some(UserAction::Report));
        assert_eq!(state.key(KeyCode::Char('M').into()), Some(UserAction::Minimize));
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
        state.receive(report(9_048_576));
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
        state.receive(report(1));
        assert!(text(&state).contains("8,000,000 B"), "paused");
        assert_eq!(state.key(KeyCode::Char('q').into()), Some(UserAction::Quit));
    }
}
