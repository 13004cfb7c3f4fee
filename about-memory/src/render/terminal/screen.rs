//! Draws the state on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::lines::Line as ScreenLine;
use super::row::{Form, cut, row};
use crate::render::terminal_text::line as safe;
use crate::report::numbers::Bytes;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The contents of the screen.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a key turns")]
pub(crate) struct Screen {
    /// The program's name and number.
    pub(crate) program: String,
    /// The time at which the last report came.
    pub(crate) received: Option<Instant>,
    pub(crate) lines: Vec<ScreenLine>,
    /// The amounts of each node since the view began, by its path.
    pub(crate) courses: HashMap<String, Vec<f64>>,
    /// The time from the first to the last of them.
    pub(crate) watched: Duration,
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
    /// Text over the tree, such as the unreported places.
    pub(crate) sheet: Option<Sheet>,
    pub(crate) is_coloured: bool,
    /// True while the user types a filter.
    pub(crate) is_typing: bool,
    pub(crate) is_paused: bool,
    pub(crate) shows_help: bool,
    /// True while differences to a marked report are shown.
    pub(crate) is_marked: bool,
    pub(crate) is_verbose: bool,
    pub(crate) is_by_name: bool,
}

/// A text over the tree, which can be scrolled.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// The first line in sight.
    pub(crate) top: usize,
}

const HELP: &str = "\
↑ ↓ j k      move by a line              PgUp PgDn Home End  move further
→ ←          open, fold, move to the parent
Enter Space  open or fold
mouse        wheel: scroll; click: choose, and again: open or fold
/            filter by text; Esc clears the filter
m            mark this report and show the differences; again to stop
d            the unreported places, with suggestions
w            save this moment's report in the working directory
s            sort by name, or by amount
v            verbose: all nodes, in bytes
p            pause, and continue
r            refresh now
M            ask the program to release caches and unused heap
q            quit";

/// The lines above the tree.
pub(crate) const ABOVE: u16 = 1;

/// Draws the screen, and scrolls until the cursor is visible.
pub(crate) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let one = Constraint::Length(1);
    let rows = [Constraint::Length(ABOVE), Constraint::Min(1), one, one];
    let [head, body, info, foot] = Layout::vertical(rows).areas(frame.area());
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let width = usize::from(body.width);
    let bytes = if screen.is_verbose { Bytes::Plain } else { Bytes::Mb };
    let nodes = screen.lines.iter().filter(|line| line.path.is_some());
    let widest = nodes.map(|line| line.text.chars().count()).max().unwrap_or(0);
    let form = Form { width, widest, is_coloured: screen.is_coloured, bytes };
    frame.render_widget(Paragraph::new(heading(screen, form)).style(reversed), head);
    screen.height = usize::from(body.height);
    match &mut screen.sheet {
        Some(sheet) => draw_sheet(frame, sheet, body),
        None => draw_tree(frame, screen, body, form),
    }
    let (words, style) = information(screen);
    frame
        .render_widget(Paragraph::new(cut(&safe(&words), width)).style(style.unwrap_or(dim)), info);
    frame.render_widget(Paragraph::new(keys(screen, width)).style(reversed), foot);
    if screen.shows_help {
        draw_help(frame);
    }
}

fn draw_tree(frame: &mut Frame<'_>, screen: &mut Screen, body: Rect, form: Form) {
    let least = (screen.cursor + 1).saturating_sub(screen.height);
    screen.top = screen.top.max(least).min(screen.cursor);
    // Show the heading above the first line together with that line, if the cursor stays in sight.
    let are_headings = screen.lines.iter().take(screen.top).all(|line| line.path.is_none());
    if are_headings && screen.cursor < screen.height {
        screen.top = 0;
    }
    let lines = screen.lines.iter().enumerate().skip(screen.top).take(screen.height);
    let lines: Vec<Line<'_>> = lines
        .map(|(place, line)| {
            let course = line.path.as_ref().and_then(|path| screen.courses.get(path));
            row(line, course.map_or(&[], Vec::as_slice), form, place == screen.cursor)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), body);
}

fn draw_sheet(frame: &mut Frame<'_>, sheet: &mut Sheet, body: Rect) {
    let room = usize::from(body.height.saturating_sub(2));
    let width = usize::from(body.width.saturating_sub(2)).max(1);
    let lines: Vec<String> = sheet.lines.iter().flat_map(|line| wrap(&safe(line), width)).collect();
    sheet.top = sheet.top.min(lines.len().saturating_sub(room));
    let lines: Vec<Line<'_>> =
        lines.into_iter().skip(sheet.top).take(room).map(Line::raw).collect();
    let block = Block::bordered().title(format!(" {} ", safe(&sheet.title)));
    frame.render_widget(Clear, body);
    frame.render_widget(Paragraph::new(lines).block(block), body);
}

/// Returns the lines of a text that is cut at blanks, and indented as its begin.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let indent: String = text.chars().take_while(|letter| *letter == ' ').take(width / 2).collect();
    let mut lines = Vec::new();
    let mut line = indent.clone();
    for word in text.trim_start().split(' ') {
        let is_first = line.len() == indent.len();
        if !is_first && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, indent.clone()));
        } else if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Returns the first line: the program, the switches that are on, and the names of the columns.
fn heading(screen: &Screen, form: Form) -> String {
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
    let words = format!(" {}", words.join(" · "));
    let words = safe(&words);
    if !form.has_course() {
        return cut(&words, form.width);
    }
    let columns = format!("change in {} s, course", screen.watched.as_secs());
    // Above the columns of the rows, which end at the same place.
    let room = form.end().saturating_sub(columns.chars().count() + 1);
    format!("{:room$} {columns}", cut(&words, room))
}

/// Returns the line below the tree: the filter that is typed, the last event, the description of
/// the chosen node, or a note about the report.
fn information(screen: &Screen) -> (String, Option<Style>) {
    let bold = Some(Style::new().add_modifier(Modifier::BOLD));
    let description = screen.lines.get(screen.cursor).map_or("", |line| &line.description);
    let note = screen.notes.first();
    match () {
        () if screen.is_typing => (format!("/{}▏", screen.filter), bold),
        () if !screen.message.is_empty() => (screen.message.replace('\n', " "), bold),
        () if !description.is_empty() => (description.to_owned(), None),
        () => (note.map(|note| format!("note: {note}")).unwrap_or_default(), None),
    }
}

/// Returns the line of keys, which is always there. A narrow terminal shows those that fit.
fn keys(screen: &Screen, width: usize) -> String {
    let keys: &[&str] = match () {
        () if screen.is_typing => &["Enter keep", "Esc clear"],
        () if screen.sheet.is_some() => &["Esc back", "↑↓ scroll", "w save"],
        () => &[
            "q quit",
            "? all keys",
            "/ filter",
            "m mark",
            "d unreported",
            "w save",
            "p pause",
            "←→ fold",
            "s sort",
            "v verbose",
        ],
    };
    let mut line = String::new();
    for key in keys {
        let with = format!("{line} {key} ");
        if with.chars().count() > width {
            break;
        }
        line = with;
    }
    line
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

    use crate::report::numbers::Unit;

    use super::*;

    fn line(text: String, path: Option<&str>) -> ScreenLine {
        let path = path.map(str::to_owned);
        ScreenLine {
            text,
            path,
            is_open: false,
            has_children: false,
            depth: 0,
            unit: Unit::Bytes,
            description: String::new(),
        }
    }

    /// Returns a heading and 19 lines.
    fn lines() -> Vec<ScreenLine> {
        let nodes = (1..20).map(|number| line(format!("├──{number} ── node"), Some("node")));
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
            let rows = drawn(&mut screen, 40, 8);
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
        // The lines of the tree.
        assert_eq!(modifier(3), Modifier::DIM);
        assert_eq!(modifier(5), Modifier::REVERSED);
    }

    #[test]
    fn the_heading_names_the_switches_that_are_on_and_the_columns() {
        let shop = || Screen { program: "shop (pid 7)".into(), ..Screen::default() };
        let narrow = Form { width: 60, widest: 0, is_coloured: false, bytes: Bytes::Mb };
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
            // The line below the tree shows it.
            (Screen { filter: "js".into(), is_typing: true, ..shop() }, " shop (pid 7)"),
        ];
        for (screen, expected) in table {
            assert_eq!(heading(&screen, narrow), expected);
        }
        let received = heading(&Screen { received: Some(Instant::now()), ..shop() }, narrow);
        assert!(received.starts_with(" shop (pid 7) · ") && received.ends_with(" s ago"));
        let watched = Screen { watched: Duration::from_secs(58), ..shop() };
        let wide = heading(&watched, Form { width: 80, widest: 70, ..narrow });
        assert!(wide.ends_with("  change in 58 s, course") && wide.chars().count() == 80, "{wide}");
    }

    #[test]
    fn the_most_urgent_text_is_below_the_tree_and_the_keys_stay() {
        let words = |screen: &mut Screen| {
            let mut rows = drawn(screen, 80, 6);
            assert!(rows[5].starts_with(" q quit  ? all keys ") || screen.is_typing, "{rows:?}");
            rows.remove(4)
        };
        let mut screen = Screen { lines: lines(), cursor: 1, ..Screen::default() };
        assert_eq!(words(&mut screen), "");
        screen.notes = vec!["a reporter was missed".into(), "another".into()];
        assert_eq!(words(&mut screen), "note: a reporter was missed");
        screen.lines[1].description = "The words of the index.".into();
        assert_eq!(words(&mut screen), "The words of the index.");
        screen.message = "no\nanswer".into();
        assert_eq!(words(&mut screen), "no answer");
        (screen.filter, screen.is_typing) = ("js".into(), true);
        assert_eq!(words(&mut screen), "/js▏");
        assert_eq!(keys(&screen, 80), " Enter keep  Esc clear ");
        let all = keys(&Screen::default(), 200);
        assert!(all.ends_with(" v verbose "), "{all}");
        assert!(keys(&Screen::default(), 80).chars().count() <= 80);
    }

    #[test]
    fn a_sheet_covers_the_tree_and_scrolls_to_its_end() {
        let sheet = Sheet {
            title: "unreported".into(),
            lines: (1..=9).map(|number| format!("place {number}")).collect(),
            top: 100,
        };
        let mut screen = Screen { lines: lines(), sheet: Some(sheet), ..Screen::default() };
        let rows = drawn(&mut screen, 30, 8);
        assert!(rows[1].starts_with("┌ unreported ─"), "{rows:?}");
        assert!(rows[2].starts_with("│place 7") && rows[4].starts_with("│place 9"), "{rows:?}");
        assert_eq!(screen.sheet.unwrap().top, 6);
    }

    #[test]
    fn long_lines_of_a_sheet_are_cut_at_blanks() {
        assert_eq!(wrap("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(wrap("one", 9), ["one"]);
        assert_eq!(wrap("", 9), [""]);
        assert_eq!(wrap("a-word-that-does-not-fit b", 9), ["a-word-that-does-not-fit", "b"]);
    }

    #[test]
    fn the_keys_are_in_the_middle() {
        let mut screen = Screen { shows_help: true, ..Screen::default() };
        let rows = drawn(&mut screen, 100, 22);
        let is_in = |row: &String| row.starts_with(&" ".repeat(11)) && row.chars().count() == 88;
        let inside: Vec<usize> = (0..22).filter(|&row| is_in(&rows[row])).collect();
        assert_eq!(inside, (3..19).collect::<Vec<_>>());
        assert!(rows[3].starts_with("           ┌ keys ───"), "{rows:?}");
        let last = "           │ q            quit                                                         │";
        assert_eq!(rows[17], last);
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
