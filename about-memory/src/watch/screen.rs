//! Draws the state on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::state::State;

const HELP: &str = "\
↑ ↓ j k      go to another line          PgUp PgDn Home End  go further
→ ←          open, fold, go to the parent
Enter Space  open or fold
/            filter by text; Esc ends it
m            mark this moment, and show what changes; again to stop
s            sort by name, or by amount
v            verbose: everything, and in bytes
p            pause, and go on
r            ask now
M            have the program give up what it can do without
q            quit";

/// Draws everything, and sees to it that the cursor is in sight.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(heading(state)).style(reversed), head);
    state.height = usize::from(body.height);
    let last = state.top + state.height.saturating_sub(1);
    if state.cursor < state.top {
        state.top = state.cursor;
    } else if state.cursor > last {
        state.top += state.cursor - last;
    }
    // A heading above the first line comes into sight with it.
    if state.lines.iter().take(state.top).all(|line| line.path.is_none()) {
        state.top = 0;
    }
    let lines = state.lines.iter().enumerate().skip(state.top).take(state.height);
    let lines: Vec<Line<'_>> = lines
        .map(|(place, line)| match (place == state.cursor, &line.path) {
            (true, _) => Line::styled(line.text.as_str(), reversed),
            (false, None) => {
                Line::styled(line.text.as_str(), Style::new().add_modifier(Modifier::BOLD))
            }
            (false, Some(_)) => Line::raw(line.text.as_str()),
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), body);
    frame.render_widget(Paragraph::new(footing(state)), foot);
    if state.shows_help {
        draw_help(frame);
    }
}

fn heading(state: &State) -> String {
    let mut words = vec![state.program.clone()];
    if let Some(came) = state.came {
        words.push(format!("{} s ago", came.elapsed().as_secs()));
    }
    let switches = [
        (state.is_marked(), "since the mark"),
        (state.is_paused, "paused"),
        (state.is_verbose(), "verbose"),
        (state.is_by_name(), "by name"),
    ];
    words.extend(switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, word)| word.to_owned()));
    if !state.filter.is_empty() && !state.is_typing {
        words.push(format!("filter: {}", state.filter));
    }
    format!(" {}", words.join(" · "))
}

fn footing(state: &State) -> String {
    if state.is_typing {
        return format!("/{}▏", state.filter);
    }
    if !state.said.is_empty() {
        return state.said.replace('\n', " ");
    }
    if let Some(note) = state.notes.first() {
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
