//! Draws a row of the terminal view: a line of the tree in colours, its change, and its course.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::lines::Line as ScreenLine;
use crate::render::terminal_text::line as safe;
use crate::report::amount::Amount;
use crate::report::numbers::{self, Bytes};

/// The columns of the change.
const CHANGE: usize = 13;

/// The columns of the course.
const COURSE: usize = 12;

/// The narrowest terminal with both.
const NARROWEST: usize = 70;

/// The fewest columns that the tree gets beside its columns.
const TREE: usize = 40;

/// The form of all rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) width: usize,
    /// The columns of the widest line of the tree.
    pub(super) widest: usize,
    pub(super) is_coloured: bool,
    pub(super) bytes: Bytes,
}

impl Form {
    /// Returns the columns of the tree.
    fn of_tree(self) -> usize {
        if !self.has_course() {
            return self.width;
        }
        let room = self.width - CHANGE - COURSE - 2;
        // The columns are beside the tree, however wide the terminal is.
        self.widest.clamp(TREE.min(room), room)
    }

    /// Returns the column after the last one of a row.
    pub(super) fn end(self) -> usize {
        if self.has_course() { self.of_tree() + CHANGE + COURSE + 2 } else { self.width }
    }

    pub(super) fn has_course(self) -> bool {
        self.width >= NARROWEST
    }

    fn colour(self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Returns a row. `course` has the amounts of the node, oldest first.
pub(super) fn row(line: &ScreenLine, course: &[f64], form: Form, is_chosen: bool) -> Line<'static> {
    let text = safe(&line.text).into_owned();
    let cut = cut(&text, form.of_tree());
    let mut spans = match line.path {
        None => vec![Span::styled(cut.clone(), Style::new().add_modifier(Modifier::BOLD))],
        Some(_) => parts(&cut, form),
    };
    if form.has_course() && line.path.is_some() {
        let filler = form.of_tree() - cut.chars().count() + 1;
        let change = change(line, course, form.bytes);
        let colour = if change.starts_with('-') { Color::Green } else { Color::Red };
        spans.push(Span::raw(format!("{:filler$}", "")));
        spans.push(Span::styled(format!("{change:>CHANGE$} "), form.colour(colour)));
        spans.push(Span::styled(sparkline(course), form.colour(Color::Cyan)));
    }
    if is_chosen {
        let whole: String = spans.iter().map(|span| span.content.as_ref()).collect();
        return Line::styled(whole, Style::new().add_modifier(Modifier::REVERSED));
    }
    Line::from(spans)
}

/// Returns a text of at most this many characters, with `…` at its end if it is cut.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Returns the parts of a node's line in colours: lines of the tree, amount, share, name.
fn parts(text: &str, form: Form) -> Vec<Span<'static>> {
    let is_of_tree = |letter: char| matches!(letter, '│' | '├' | '└' | '─' | ' ');
    let amount_at = text.find(|letter| !is_of_tree(letter)).unwrap_or(text.len());
    let (tree, rest) = text.split_at(amount_at);
    let separator = [" ── ", " -- ", " ++ "].iter().filter_map(|mark| rest.find(mark)).min();
    let (amounts, name) = rest.split_at(separator.unwrap_or(rest.len()));
    let (amount, share) = amounts.split_at(amounts.find(" (").unwrap_or(amounts.len()));
    let dim = Style::new().add_modifier(Modifier::DIM);
    let of_name = if name.contains("heap-unclassified") {
        form.colour(Color::Yellow)
    } else if name.contains("[?!]") {
        form.colour(Color::Red)
    } else {
        Style::new()
    };
    let part = |text: &str, style| Span::styled(text.to_owned(), style);
    vec![
        part(tree, dim),
        part(amount, Style::new().add_modifier(Modifier::BOLD)),
        part(share, dim),
        part(name, of_name),
    ]
}

/// Returns the difference of the last and the first amount, with its sign; empty if there is none.
fn change(line: &ScreenLine, course: &[f64], bytes: Bytes) -> String {
    let (Some(first), Some(last)) = (course.first(), course.last()) else { return String::new() };
    let difference = last - first;
    if difference == 0.0 || !difference.is_finite() {
        return String::new();
    }
    let text = numbers::amount(&Amount::Number(difference.abs()), line.unit, bytes);
    if !text.contains(|digit| matches!(digit, '1'..='9')) {
        // Too little for the unit.
        return String::new();
    }
    format!("{}{text}", if difference < 0.0 { '-' } else { '+' })
}

/// Returns amounts as bars, the newest at the right; the lowest and the highest bar are the lowest
/// and the highest amount. An amount that never changes is a low line.
pub(super) fn sparkline(course: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (low, high) =
        course.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &amount| {
            (low.min(amount), high.max(amount))
        });
    let shown = course.len().min(COURSE);
    // Each bar is the highest of its amounts, so that no peak is lost.
    let bar = |at: usize| {
        let (from, to) = (at * course.len() / shown, (at + 1) * course.len() / shown);
        let highest = course[from..to].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let share = if high > low { (highest - low) / (high - low) } else { 0.0 };
        let bar = BARS.iter().enumerate().rfind(|(at, _)| *at as f64 <= share * 7.0);
        bar.map_or('▁', |(_, bar)| *bar)
    };
    let bars: String = (0..shown).map(bar).collect();
    format!("{bars:>COURSE$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::numbers::Unit;

    fn line(text: &str) -> ScreenLine {
        ScreenLine {
            text: text.to_owned(),
            path: Some("p/a".to_owned()),
            is_open: false,
            has_children: false,
            depth: 0,
            unit: Unit::Bytes,
            description: String::new(),
        }
    }

    fn form(width: usize) -> Form {
        Form { width, widest: 53, is_coloured: true, bytes: Bytes::Mb }
    }

    #[test]
    fn a_course_is_bars_from_the_lowest_to_the_highest_amount() {
        let table: [(&[f64], &str); 5] = [
            (&[], "            "),
            (&[5.0], "           ▁"),
            (&[5.0, 5.0, 5.0], "         ▁▁▁"),
            (&[0.0, 7.0, 3.5], "         ▁█▄"),
            // 24 amounts in 12 bars: the peak is in one of them.
            (
                &[
                    0., 0., 0., 9., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.,
                    0., 0., 0., 9.,
                ],
                "▁█▁▁▁▁▁▁▁▁▁█",
            ),
        ];
        for (course, expected) in table {
            assert_eq!(sparkline(course), expected);
        }
    }

    #[test]
    fn a_row_has_its_change_and_course_if_the_terminal_is_wide() {
        let mib = 1_048_576.0;
        let text = |width, course: &[f64]| {
            let row = row(&line("├──2.00 MB (10.00%) ── words"), course, form(width), false);
            row.spans.iter().map(|span| span.content.to_string()).collect::<String>()
        };
        assert_eq!(
            text(80, &[2.0 * mib, 1.5 * mib]),
            "├──2.00 MB (10.00%) ── words                               -0.50 MB           █▁"
        );
        assert_eq!(
            text(80, &[mib, mib]).trim_end(),
            "├──2.00 MB (10.00%) ── words                                                  ▁▁"
        );
        assert_eq!(
            text(80, &[mib, mib + 1.0]).trim_end(),
            "├──2.00 MB (10.00%) ── words                                                  ▁█"
        );
        assert_eq!(text(200, &[mib, mib]).trim_end().chars().count(), 80);
        assert_eq!(text(40, &[mib, 2.0 * mib]), "├──2.00 MB (10.00%) ── words");
        assert_eq!(text(20, &[]), "├──2.00 MB (10.00%)…");
    }

    #[test]
    fn growth_is_red_and_shrinking_green_unless_colours_are_off() {
        let of = |course: &[f64], is_coloured| {
            let form = Form { is_coloured, ..form(80) };
            let row = row(&line("1.00 MB ── words"), course, form, false);
            row.spans[row.spans.len() - 2].style.fg
        };
        assert_eq!(of(&[1e6, 2e6], true), Some(Color::Red));
        assert_eq!(of(&[2e6, 1e6], true), Some(Color::Green));
        assert_eq!(of(&[2e6, 1e6], false), None);
    }

    #[test]
    fn the_parts_of_a_line_have_their_own_styles() {
        let parts = parts("│  └──0.02 MB (00.20%) ── heap-unclassified", form(80));
        let texts: Vec<_> = parts.iter().map(|part| part.content.as_ref()).collect();
        assert_eq!(texts, ["│  └──", "0.02 MB", " (00.20%)", " ── heap-unclassified"]);
        assert_eq!(parts[3].style.fg, Some(Color::Yellow));
    }
}
