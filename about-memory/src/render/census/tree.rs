//! Writes a census as a tree: every group with its bytes, share and blocks, and its inner groups.

use std::io::{self, Write};

use memreport_analysis::analysis::shorten;
use memreport_analysis::census::{Amount, Counted, Group, Key, Node};

use super::Shown;

/// The number of frames shown of a stack.
const FRAMES: usize = 8;

/// The smallest width of a name.
const MIN_NAME: usize = 16;

/// Writes the first groups of each node, and the rest as one line.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", shown.head())?;
    let mut widths = Widths { bytes: "bytes".len(), blocks: "blocks".len() };
    widths.measure(shown.census.root(), shown);
    let share = if shown.census.is_difference() { "" } else { "    share" };
    let Widths { bytes, blocks } = widths;
    writeln!(out, "{:>bytes$}{share} {:>blocks$}", "bytes", "blocks")?;
    Tree { shown, widths, out }.children(shown.census.root(), &mut String::new())
}

/// The widths of the columns of figures.
struct Widths {
    bytes: usize,
    blocks: usize,
}

impl Widths {
    /// Widens the columns for all figures of a node: in a difference, parts can be larger than
    /// their sum.
    fn measure(&mut self, node: &Node, shown: &Shown<'_>) {
        self.bytes = self.bytes.max(shown.number(node.amount.bytes).len());
        self.blocks = self.blocks.max(shown.number(node.amount.count).len());
        if let Counted::Groups(groups) | Counted::Several(groups) = &node.counted {
            groups.iter().for_each(|group| self.measure(&group.node, shown));
        }
    }
}

struct Tree<'t> {
    shown: &'t Shown<'t>,
    widths: Widths,
    out: &'t mut dyn Write,
}

/// A line below a node, or several lines for a stack.
struct Line<'c> {
    texts: Vec<String>,
    amount: Amount,
    node: Option<&'c Node>,
}

impl Tree<'_> {
    /// Writes the children of a node. `before` is the prefix of their names.
    fn children(&mut self, node: &Node, before: &mut String) -> io::Result<()> {
        let lines = self.lines(node);
        let last = lines.len().saturating_sub(1);
        let is_top = before.is_empty();
        for (at, Line { texts, amount, node }) in lines.into_iter().enumerate() {
            let (here, below) = match (is_top, at == last) {
                (true, _) => ("", ""),
                (_, true) => ("└─ ", "   "),
                _ => ("├─ ", "│  "),
            };
            // The first level has no lines. Its prefix must not be empty, or the next level counts
            // as the first.
            let (here, below) = if is_top { (" ", " ") } else { (here, below) };
            let has_children = node.is_some_and(has_children);
            self.line(&amount, &format!("{before}{here}"), texts.first().map_or("", |text| text))?;
            let length = before.len();
            before.push_str(below);
            for text in texts.iter().skip(1) {
                let guide = if has_children { "│  " } else { "   " };
                self.text(&format!("{before}{guide}"), text)?;
            }
            if let Some(node) = node {
                self.children(node, before)?;
            }
            before.truncate(length);
        }
        Ok(())
    }

    fn lines<'c>(&self, node: &'c Node) -> Vec<Line<'c>> {
        match &node.counted {
            Counted::Groups(groups) => self.groups(groups),
            Counted::Several(groups) => {
                let line = |group: &'c Group| Line {
                    texts: vec![format!("[by {}]", group.key.describe())],
                    amount: group.node.amount,
                    node: Some(&group.node),
                };
                groups.iter().map(line).collect()
            }
            Counted::Bucket(bucketed) => {
                let line = |text: String, amount| Line { texts: vec![text], amount, node: None };
                let listed = bucketed.listed.iter();
                let mut lines: Vec<_> =
                    listed.map(|blocks| line(blocks.describe(), blocks.amount)).collect();
                if bucketed.left_out != Amount::default() {
                    lines.push(line("(left out)".to_owned(), bucketed.left_out));
                }
                lines
            }
            _ => Vec::new(),
        }
    }

    /// Returns the lines of the first groups, one for the rest, and all fixed ones.
    fn groups<'c>(&self, groups: &'c [Group]) -> Vec<Line<'c>> {
        let is_shown = |group: &&Group| {
            group.node.amount != Amount::default()
                || has_children(&group.node)
                || is_state(&group.key)
        };
        let (mut fixed, mut named): (Vec<_>, Vec<_>) =
            groups.iter().filter(is_shown).partition(|group| matches!(group.key, Key::Fixed(_)));
        let rest = named.split_off(self.shown.top.min(named.len()));
        let line = |group: &'c Group| Line {
            texts: texts(&group.key),
            amount: group.node.amount,
            node: Some(&group.node),
        };
        let mut lines: Vec<Line<'_>> = named.into_iter().map(line).collect();
        if !rest.is_empty() {
            let mut amount = Amount::default();
            rest.iter().for_each(|group| amount.add(&group.node.amount));
            let texts = vec![format!(
                "… {} more",
                memreport_analysis::analysis::commas(rest.len() as i128)
            )];
            lines.push(Line { texts, amount, node: None });
        }
        lines.extend(fixed.drain(..).map(line));
        lines
    }

    fn line(&mut self, amount: &Amount, before: &str, text: &str) -> io::Result<()> {
        let [bytes, count] = [amount.bytes, amount.count].map(|number| self.shown.number(number));
        let share = self.shown.share(amount.bytes);
        let share = share.map_or_else(String::new, |share| format!(" {share:>8}"));
        let Widths { bytes: wide, blocks } = self.widths;
        write!(self.out, "{bytes:>wide$}{share} {count:>blocks$} ")?;
        self.name(before, text)
    }

    /// Writes a further line of a name.
    fn text(&mut self, before: &str, text: &str) -> io::Result<()> {
        write!(self.out, "{:width$} ", "", width = self.width())?;
        self.name(before, text)
    }

    fn name(&mut self, before: &str, text: &str) -> io::Result<()> {
        let taken = self.width() + 1 + before.chars().count();
        let room = self.shown.columns.saturating_sub(taken).max(MIN_NAME);
        writeln!(self.out, "{before}{}", shorten(text, room))
    }

    /// Returns the width of the figures.
    fn width(&self) -> usize {
        let share = if self.shown.census.is_difference() { 0 } else { 9 };
        self.widths.bytes + share + 1 + self.widths.blocks
    }
}

fn is_state(key: &Key) -> bool {
    matches!(key, Key::Fixed("unreported" | "once" | "twice"))
}

/// Returns whether lines follow below.
fn has_children(node: &Node) -> bool {
    match &node.counted {
        Counted::Groups(groups) | Counted::Several(groups) => groups
            .iter()
            .any(|group| group.node.amount != Amount::default() || has_children(&group.node)),
        Counted::Bucket(bucketed) => !bucketed.listed.is_empty(),
        _ => false,
    }
}

/// Returns the name of a group: of a stack, a line for each frame.
fn texts(key: &Key) -> Vec<String> {
    let Key::Stack(frames) = key else { return vec![key.describe()] };
    let mut texts: Vec<String> = frames.iter().take(FRAMES).map(ToString::to_string).collect();
    if frames.len() > FRAMES {
        texts.push(format!("… {} more frames", frames.len() - FRAMES));
    }
    texts
}
