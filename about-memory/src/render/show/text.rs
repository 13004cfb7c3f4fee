//! Writes the same text, to the byte, as copying from Firefox's page gives.

use crate::render::colour::{Style, paint};
use crate::render::terminal_text;
use crate::report::numbers;
use crate::report::page::{Page, ProcessPage};
use crate::report::report_tree::Presence;
use crate::report::tree::{Item, Settings, Tree};
use std::borrow::Cow;
use std::io::{self, Write};

/// The destination of the text. The default gets the same bytes as Firefox gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Medium {
    /// True to use colours.
    pub is_coloured: bool,
    /// True to keep each name in its line, with pictures of control characters (`␛`).
    pub is_terminal: bool,
}

/// Writes the page. Returns the invalid paths that no process has listed.
///
/// # Errors
/// The text cannot be written.
pub fn write(page: &Page<'_>, medium: Medium, out: &mut dyn Write) -> io::Result<Vec<String>> {
    writeln!(out, "Total resident memory (approximate) -- {}", page.total_resident())?;
    let mut is_empty = true;
    let unlisted = page.processes(|process| {
        is_empty = false;
        Text { settings: page.settings, medium, out: &mut *out }.write_process(&process)
    })?;
    if is_empty {
        writeln!(out, "No results found.")?;
    }
    Ok(unlisted)
}

/// Writes one tree, a line for each visible item.
#[cfg(feature = "top")]
pub(crate) fn write_tree(
    tree: &Tree,
    settings: &Settings,
    medium: Medium,
    out: &mut dyn Write,
) -> io::Result<()> {
    Text { settings, medium, out }.write_tree(tree, "")
}

/// Returns the padding before each measurement outside trees, which right-aligns their values.
pub(crate) fn paddings(flats: &[Tree], settings: &Settings) -> Vec<String> {
    let width = |flat: &Tree| {
        numbers::amount(&flat.root().amount, flat.unit, settings.bytes()).chars().count()
    };
    let widths: Vec<usize> = flats.iter().map(width).collect();
    let widest = widths.iter().max().copied().unwrap_or(0);
    widths.into_iter().map(|width| " ".repeat(widest - width)).collect()
}

struct Text<'a> {
    settings: &'a Settings,
    medium: Medium,
    out: &'a mut dyn Write,
}

impl Text<'_> {
    fn write_process(&mut self, process: &ProcessPage<'_>) -> io::Result<()> {
        let name = self.heading(process.name);
        if !name.is_empty() {
            writeln!(self.out, "{}", paint(&name, Style::Heading, self.medium.is_coloured))?;
        }
        self.write_warnings(process)?;
        if let Some(explicit) = &process.explicit {
            writeln!(self.out, "Explicit Allocations\n")?;
            self.write_tree(explicit, "")?;
            writeln!(self.out)?;
        }
        if !process.trees.is_empty() || !process.flats.is_empty() {
            writeln!(self.out, "Other Measurements\n")?;
        }
        for tree in &process.trees {
            self.write_tree(tree, "")?;
            writeln!(self.out)?;
        }
        for (flat, padding) in process.flats.iter().zip(paddings(&process.flats, self.settings)) {
            self.write_tree(flat, &padding)?;
        }
        if !process.flats.is_empty() {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{}", self.heading(&format!("End of {}", process.name)))
    }

    fn write_warnings(&mut self, process: &ProcessPage<'_>) -> io::Result<()> {
        for warning in &process.warnings {
            write!(self.out, "\n{}\n", paint(warning, Style::Invalid, self.medium.is_coloured))?;
        }
        if let Some((last, others)) = process.invalid.split_last() {
            writeln!(
                self.out,
                "\nWARNING: the following values are negative or unreasonably large.\n"
            )?;
            for path in others {
                writeln!(self.out, "    {}", self.heading(path))?;
            }
            // Firefox prints a blank after the last one.
            writeln!(self.out, "    {} ", self.heading(last))?;
            let words = "This indicates a defect in one or more memory reporters. The invalid values are highlighted.";
            writeln!(self.out, "\n{words}")?;
        }
        Ok(())
    }

    fn write_tree(&mut self, tree: &Tree, padding: &str) -> io::Result<()> {
        let mut lines = Lines { text: self, tree, indent: padding.to_owned() };
        let value_width = lines.write_item(tree.root(), "", "", 0)?;
        let mut open =
            vec![Branch { item: tree.root(), next_child: 0, indent: padding.len(), value_width }];
        while let Some(branch) = open.last_mut() {
            let (item, next, parent_width) = (branch.item, branch.next_child, branch.value_width);
            lines.indent.truncate(branch.indent);
            branch.next_child += 1;
            if next >= item.children.len() || !item.shows_children {
                open.pop();
                continue;
            }
            let is_last = next + 1 == item.children.len();
            let (own, children) =
                if is_last { ("└──", "   ") } else { ("├──", "│  ") };
            let child = &tree.items[item.children[next]];
            let value_width = lines.write_item(child, own, children, parent_width)?;
            open.push(Branch {
                item: child,
                next_child: 0,
                indent: lines.indent.len(),
                value_width,
            });
        }
        Ok(())
    }

    fn heading<'t>(&self, text: &'t str) -> Cow<'t, str> {
        drawn(in_a_line(text), self.medium)
    }
}

/// A node whose children are being drawn.
struct Branch<'t> {
    item: &'t Item,
    next_child: usize,
    /// The length of the indentation that its children share.
    indent: usize,
    value_width: usize,
}

struct Lines<'a, 'o> {
    text: &'a mut Text<'o>,
    tree: &'a Tree,
    indent: String,
}

impl Lines<'_, '_> {
    /// Writes one line, and indents its children. Returns the width of its value.
    fn write_item(
        &mut self,
        item: &Item,
        own: &str,
        children: &str,
        parent_width: usize,
    ) -> io::Result<usize> {
        let Text { settings, medium, out } = self.text;
        let is_coloured = medium.is_coloured;
        let value = numbers::amount(&item.amount, self.tree.unit, settings.bytes());
        let width = value.chars().count();
        let filler = parent_width.saturating_sub(width);
        let start = self.indent.len();
        self.indent.push_str(own);
        self.indent.extend(std::iter::repeat_n('─', filler));
        let style = if item.is_invalid { Style::Invalid } else { Style::Value };
        write!(
            out,
            "{}{}",
            paint(&self.indent, Style::Line, is_coloured),
            paint(&value, style, is_coloured)
        )?;
        self.indent.truncate(start);
        self.indent.push_str(children);
        self.indent.extend(std::iter::repeat_n(' ', filler));
        if !self.tree.is_flat {
            write!(out, " ({})", numbers::fraction(&item.amount, &self.tree.root().amount))?;
        }
        let separator = match (item.children.is_empty(), item.is_open) {
            (true, _) => "──",
            (false, true) => "--",
            (false, false) => "++",
        };
        let name = item.shown_name();
        write!(out, " {separator} {}", drawn(as_copied(&name), *medium))?;
        if item.is_invalid {
            write!(out, " {}", paint("[?!]", Style::Invalid, is_coloured))?;
        }
        if item.merged > 0 {
            write!(out, " [{}]", item.merged)?;
        }
        match item.presence {
            Presence::Both => {}
            Presence::First => write!(out, " {}", paint("[-]", Style::Gone, is_coloured))?,
            Presence::Second => write!(out, " {}", paint("[+]", Style::New, is_coloured))?,
            Presence::Added => write!(out, " [!]")?,
        }
        writeln!(out)?;
        Ok(width)
    }
}

/// Escapes characters that a terminal acts on. The gate to terminals would do so as well, except
/// for line breaks and for our own colours in foreign text.
fn drawn(text: Cow<'_, str>, medium: Medium) -> Cow<'_, str> {
    if !medium.is_terminal && !medium.is_coloured {
        return text;
    }
    match terminal_text::line(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(safe) => safe.into(),
    }
}

/// Returns text as copying gives it: without NUL, and with plain blanks for no-break spaces.
fn as_copied(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\u{a0}']) {
        text.replace('\0', "").replace('\u{a0}', " ").into()
    } else {
        text.into()
    }
}

/// Returns text of a heading or list as copying gives it: HTML's white space collapses, and is
/// removed at the ends.
fn in_a_line(text: &str) -> Cow<'_, str> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    let is_plain = !text.starts_with(is_blank)
        && !text.ends_with(is_blank)
        && !text.contains(['\t', '\n', '\r', '\0', '\u{a0}']);
    if is_plain && !text.contains("  ") {
        return text.into();
    }
    let text = text.replace('\0', "");
    let words: Vec<&str> = text.split(is_blank).filter(|word| !word.is_empty()).collect();
    words.join(" ").replace('\u{a0}', " ").into()
}

#[cfg(test)]
mod tests {
    use super::in_a_line;

    #[test]
    fn white_space_of_a_line_collapses_and_ends_are_trimmed() {
        for (text, expected) in [
            ("", ""),
            ("a b", "a b"),
            (" a b", "a b"),
            ("a b ", "a b"),
            ("a b\n", "a b"),
            ("a  b", "a b"),
            ("a\t\r\nb", "a b"),
            ("a\0b", "ab"),
            ("a\u{a0}b", "a b"),
        ] {
            assert_eq!(in_a_line(text), expected, "{text:?}");
        }
    }
}
