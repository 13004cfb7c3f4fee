//! Holds the state of the terminal view, and changes it when a key is pressed. Uses neither
//! terminal nor socket.

use super::history::History;
use crate::error::Failure;
use crate::input::open::{self, NamedBytes};
use crate::render::terminal::lines::{self, Line};
use crate::render::terminal::screen::{ABOVE, Screen, Sheet};
use crate::report::filter::Filter;
use crate::report::page::Page;
use crate::report::page::file_builder::Opened;
use crate::report::tree::Settings;
use memreport::snapshot::read::Options;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use std::collections::HashSet;
use std::time::Instant;

/// A request that a key makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserAction {
    Quit,
    Report,
    Minimize,
    /// Save a report.
    Save,
    /// Show the unreported places.
    Places,
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
    history: History,
}

impl State {
    pub(super) fn new(program: String) -> Self {
        State {
            screen: Screen { program, height: 1, ..Screen::default() },
            report: Vec::new(),
            mark: None,
            settings: Settings::default(),
            turned: HashSet::new(),
            history: History::default(),
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
        self.remember();
        self.lay_out();
    }

    /// Shows a text over the tree.
    pub(super) fn show_sheet(&mut self, title: impl Into<String>, text: &str) {
        let lines = text.lines().map(str::to_owned).collect();
        self.screen.sheet = Some(Sheet { title: title.into(), lines, top: 0 });
        self.screen.message.clear();
    }

    /// Adds the amounts of the report to the courses of its nodes.
    fn remember(&mut self) {
        let settings = Settings { is_verbose: true, ..Settings::default() };
        let from = NamedBytes { name: &self.screen.program, bytes: &self.report };
        // A report that cannot be read is named when it is laid out.
        let Ok(opened) = open::open_bytes(from, Options::default(), Filter::All, &settings) else {
            return;
        };
        let files = [opened.file];
        self.history.add(lines::amounts(&Page::new(&files, &settings)), Instant::now());
        self.screen.watched = self.history.span();
        self.screen.courses.clone_from(self.history.courses());
    }

    /// Shows a message in the last line.
    pub(super) fn show_message(&mut self, words: impl Into<String>) {
        self.screen.message = words.into();
    }

    /// Handles a key. Returns the request that it makes, if any.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<UserAction> {
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
        if let Some(sheet) = &mut self.screen.sheet {
            match key.code {
                KeyCode::Char('w') => return Some(UserAction::Save),
                KeyCode::Esc | KeyCode::Char('q' | 'd') => self.screen.sheet = None,
                code => scroll(sheet, code, self.screen.height),
            }
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(UserAction::Quit),
            KeyCode::Char('w') => return Some(UserAction::Save),
            KeyCode::Char('d') => return Some(UserAction::Places),
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

    /// Handles the mouse: the wheel scrolls, a click chooses a line, and another one turns it.
    pub(super) fn mouse(&mut self, mouse: MouseEvent) {
        let step = match mouse.kind {
            MouseEventKind::ScrollUp => -3,
            MouseEventKind::ScrollDown => 3,
            MouseEventKind::Down(MouseButton::Left) => {
                self.click(usize::from(mouse.row));
                return;
            }
            _ => return,
        };
        match &mut self.screen.sheet {
            Some(sheet) => sheet.top = sheet.top.saturating_add_signed(step),
            None => self.go(self.screen.cursor.saturating_add_signed(step)),
        }
    }

    fn click(&mut self, row: usize) {
        self.screen.shows_help = false;
        let above = usize::from(ABOVE);
        let is_in_tree = (above..above + self.screen.height).contains(&row);
        let line = self.screen.top + row.saturating_sub(above);
        if self.screen.sheet.is_some() || !is_in_tree || line >= self.screen.lines.len() {
            return;
        }
        if line == self.screen.cursor { self.turn() } else { self.go(line) }
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

/// Scrolls a text.
fn scroll(sheet: &mut Sheet, code: KeyCode, page: usize) {
    sheet.top = match code {
        KeyCode::Up | KeyCode::Char('k') => sheet.top.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => sheet.top.saturating_add(1),
        KeyCode::PageUp => sheet.top.saturating_sub(page),
        KeyCode::PageDown | KeyCode::Char(' ') => sheet.top.saturating_add(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        // Drawing moves it back to the last page.
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => sheet.top,
    };
}

#[cfg(test)]
mod tests;
