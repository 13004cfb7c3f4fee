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
    let least = (screen.cursor + 1).saturating_sub(screen.height);
    screen.top = screen.top.max(least).min(screen.cursor);
    // Show the heading above the first line together with that line, if the cursor stays in sight.
    let are_headings = screen.lines.iter().take(screen.top).all(|line| line.path.is_none());
    if are_headings && screen.cursor < screen.height {
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

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn line(text: String, path: Option<&str>) -> ScreenLine {
        let path = path.map(str::to_owned);
        ScreenLine { text, path, is_open: false, has_children: false, depth: 0 }
    }

    /// Returns a heading and 19 lines.
    fn lines() -> Vec<ScreenLine> {
        let nodes = (1..20).map(|number| line(format!("node {number}"), Some("node")));
        [line("Main Process".into(), None)].into_iter().chain(nodes).collect()
    }

    /// Draws on a terminal of this size. Returns its rows.
    fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is memory");
        terminal.draw(|frame| draw(frame, screen)).expect("it is memory");
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn the_cursor_is_in_sight() {
        let table = [
            // The first line in sight before, the cursor, the first line in sight after.
            (0, 0, 0),
            (0, 4, 0),
            (0, 5, 1),
            (0, 7, 3),
            (5, 9, 5),
            (5, 10, 6),
            (5, 5, 5),
            (5, 4, 4),
            (5, 2, 2),
            // The heading comes with the line below it.
            (5, 1, 0),
            (1, 5, 1),
        ];
        for (top, cursor, expected) in table {
            let mut screen = Screen { lines: lines(), top, cursor, ..Screen::default() };
            let rows = drawn(&mut screen, 40, 7);
            assert_eq!((screen.top, screen.height), (expected, 5), "{cursor} from {top}");
            assert_eq!(rows[1 + cursor - expected], screen.lines[cursor].text, "{rows:?}");
        }
    }

    #[test]
    fn the_line_at_the_cursor_is_reversed_and_headings_are_bold() {
        let mut screen = Screen { lines: lines(), cursor: 1, ..Screen::default() };
        let mut terminal = Terminal::new(TestBackend::new(20, 6)).expect("it is memory");
        terminal.draw(|frame| draw(frame, &mut screen)).expect("it is memory");
        let modifier = |row| terminal.backend().buffer()[(0, row)].modifier;
        assert_eq!(modifier(0), Modifier::REVERSED);
        assert_eq!(modifier(1), Modifier::BOLD);
        assert_eq!(modifier(2), Modifier::REVERSED);
        assert_eq!(modifier(3), Modifier::empty());
        assert_eq!(modifier(5), Modifier::empty());
    }

    #[test]
    fn the_heading_names_the_switches_that_are_on() {
        let shop = || Screen { program: "shop (pid 7)".into(), ..Screen::default() };
        let table = [
            (shop(), " shop (pid 7)"),
            (
                Screen { is_marked: true, is_paused: true, ..shop() },
                " shop (pid 7) · since the mark · paused",
            ),
            (
                Screen { is_verbose: true, is_by_name: true, ..shop() },
                " shop (pid 7) · verbose · by name",
            ),
            (Screen { filter: "js".into(), ..shop() }, " shop (pid 7) · filter: js"),
            // The footing shows it.
            (Screen { filter: "js".into(), is_typing: true, ..shop() }, " shop (pid 7)"),
        ];
        for (screen, expected) in table {
            assert_eq!(heading(&screen), expected);
        }
        let received = heading(&Screen { received: Some(Instant::now()), ..shop() });
        assert!(received.starts_with(" shop (pid 7) · ") && received.ends_with(" s ago"));
    }

    #[test]
    fn the_footing_shows_the_most_urgent_text() {
        let mut screen = Screen::default();
        assert!(footing(&screen).starts_with("q quit "), "{}", footing(&screen));
        screen.notes = vec!["a reporter was missed".into(), "another".into()];
        assert_eq!(footing(&screen), "note: a reporter was missed");
        screen.message = "no\nanswer".into();
        assert_eq!(footing(&screen), "no answer");
        (screen.filter, screen.is_typing) = ("js".into(), true);
        assert_eq!(footing(&screen), "/js▏");
    }

    #[test]
    fn the_keys_are_in_the_middle() {
        let mut screen = Screen { shows_help: true, ..Screen::default() };
        let rows = drawn(&mut screen, 100, 20);
        let is_in = |row: &String| row.starts_with(&" ".repeat(11)) && row.chars().count() == 88;
        let inside: Vec<usize> = (0..20).filter(|&row| is_in(&rows[row])).collect();
        assert_eq!(inside, (3..16).collect::<Vec<_>>());
        assert!(rows[3].starts_with("           ┌ keys ───"), "{rows:?}");
        let last = "           │ q            quit                                                         │";
        assert_eq!(rows[14], last);
        // A small terminal shows what fits.
        let rows = drawn(&mut screen, 30, 5);
        let expected = [
            "┌ keys ──────────────────────┐",
            "│ ↑ ↓ j k      move by a line│",
            "│ → ←          open, fold, mo│",
            "│ Enter Space  open or fold  │",
            "└────────────────────────────┘",
        ];
        assert_eq!(rows, expected);
    }
}
