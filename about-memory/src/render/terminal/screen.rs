//! Draws the state on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::lines::Line as ScreenLine;
use crate::render::terminal_text::line as safe;
use std::time::Instant;

/// The contents of the screen.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a key turns")]
pub(crate) struct Screen {
    /// The program's name and number.
    pub(crate) program: String,
    /// The time at which the last report came.
    pub(crate) received: Option<Instant>,
    pub(crate) lines: Vec<ScreenLine>,
    pub(crate) notes: Vec<String>,
    /// The line that keys act on.
    pub(crate) cursor: usize,
    /// The first line in sight. Drawing moves it to the cursor.
    pub(crate) top: usize,
    /// The number of lines in sight. Drawing sets it.
    pub(crate) height: usize,
    /// The last event, in words.
    pub(crate) message: String,
    pub(crate) filter: String,
    /// True while the user types a filter.
    pub(crate) is_typing: bool,
    pub(crate) is_paused: bool,
    pub(crate) shows_help: bool,
    /// True while differences to a marked report are shown.
    pub(crate) is_marked: bool,
    pub(crate) is_verbose: bool,
    pub(crate) is_by_name: bool,
}

const HELP: &str = "\
↑ ↓ j k      move by a line              PgUp PgDn Home End  move further
→ ←          open, fold, move to the parent
Enter Space  open or fold
/            filter by text; Esc clears the filter
m            mark this report and show the differences; again to stop
s            sort by name, or by amount
v            verbose: all nodes, in bytes
p            pause, and continue
r            refresh now
M            ask the program to release caches and unused heap
q            quit";

/// Draws the screen, and scrolls until the cursor is visible.
pub(crate) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(safe(&heading(screen)).into_owned()).style(reversed), head);
    screen.height = usize::from(body.height);
    let last = screen.top + screen.height.saturating_sub(1);
    if screen.cursor < screen.top {
        screen.top = screen.cursor;
    } else if screen.cursor > last {
        screen.top += screen.cursor - last;
    }
    // Show the heading above the first line together with that line.
    if screen.lines.iter().take(screen.top).all(|line| line.path.is_none()) {
        screen.top = 0;
    }
    let lines = screen.lines.iter().enumerate().skip(screen.top).take(screen.height);
    let lines: Vec<Line<'_>> = lines
        .map(|(place, line)| match (place == screen.cursor, &line.path) {
            (true, _) => Line::styled(safe(&line.text), reversed),
            (false, None) => {
                Line::styled(safe(&line.text), Style::new().add_modifier(Modifier::BOLD))
            }
            (false, Some(_)) => Line::raw(safe(&line.text)),
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), body);
    frame.render_widget(Paragraph::new(safe(&footing(screen)).into_owned()), foot);
    if screen.shows_help {
        draw_help(frame);
    }
}

fn heading(screen: &Screen) -> String {
    let mut words = vec![screen.program.clone()];
    if let Some(received) = screen.received {
        words.push(format!("{} s ago", received.elapsed().as_secs()));
    }
    let switches = [
        (screen.is_marked, "since the mark"),
        (screen.is_paused, "paused"),
        (screen.is_verbose, "verbose"),
        (screen.is_by_name, "by name"),
    ];
    words.extend(switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, word)| word.to_owned()));
    if !screen.filter.is_empty() && !screen.is_typing {
        words.push(format!("filter: {}", screen.filter));
    }
    format!(" {}", words.join(" · "))
}

fn footing(screen: &Screen) -> String {
    if screen.is_typing {
        return format!("/{}▏", screen.filter);
    }
    if !screen.message.is_empty() {
        return screen.message.replace('\n', " ");
    }
    if let Some(note) = screen.notes.first() {
        return format!("note: {note}");
    }
    "q quit  / filter  m mark  ←→ fold  s sort  v verbose  p pause  ? all keys".to_owned()
}

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let widest = HELP.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(HELP.lines().count() + 2).unwrap_or(u16::MAX).min(area.height);
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let text: Vec<Line<'_>> = HELP.lines().map(|line| Line::raw(format!(" {line}"))).collect();
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(" keys ")), place);
}
