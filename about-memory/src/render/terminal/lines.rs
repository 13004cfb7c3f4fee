//! Lays out a report in lines for a terminal. Each line has its path, so that it can be folded.

use std::collections::HashSet;
use std::io;

use crate::render::show::text::{self, Medium};
use crate::report::numbers::Unit;
use crate::report::page::Page;
use crate::report::report_tree::ReportTree;
use crate::report::tree::{Settings, Tree};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// The process and path of its node; `None` for a heading.
    pub(crate) path: Option<String>,
    /// True if it has visible children.
    pub(crate) is_open: bool,
    /// True if it has children.
    pub(crate) has_children: bool,
    /// The distance from the root.
    pub(crate) depth: usize,
    /// The unit of its amount.
    pub(crate) unit: Unit,
    /// The description of its report; empty for sums.
    pub(crate) description: String,
}

impl Line {
    fn heading(text: impl Into<String>) -> Self {
        Line {
            text: text.into(),
            path: None,
            is_open: false,
            has_children: false,
            depth: 0,
            unit: Unit::Count,
            description: String::new(),
        }
    }
}

/// Returns all lines of a page. The nodes in `turned` are folded if the page opens them, and open
/// if it folds them.
pub(crate) fn lines(page: &Page<'_>, turned: &HashSet<String>) -> io::Result<Vec<Line>> {
    let mut lines = Vec::new();
    page.processes(|process| {
        lines.push(Line::heading(process.name));
        lines.extend(process.warnings.iter().map(|warning| Line::heading(*warning)));
        let of = Process {
            name: process.name,
            report_tree: process.report_tree,
            settings: page.settings,
        };
        let explicit = process.explicit.into_iter();
        for mut tree in explicit.chain(process.trees) {
            write(&mut tree, &of, turned, &mut lines)?;
            lines.push(Line::heading(""));
        }
        let paddings = text::paddings(&process.flats, page.settings);
        for (mut flat, padding) in process.flats.into_iter().zip(paddings) {
            let first = lines.len();
            write(&mut flat, &of, turned, &mut lines)?;
            lines[first..].iter_mut().for_each(|line| line.text.insert_str(0, &padding));
        }
        lines.push(Line::heading(""));
        io::Result::Ok(())
    })?;
    while lines.last().is_some_and(|line| line.text.is_empty()) {
        lines.pop();
    }
    Ok(lines)
}

/// The common data of the trees of a process.
struct Process<'p> {
    name: &'p str,
    report_tree: &'p ReportTree,
    settings: &'p Settings,
}

/// Returns the amount of every node of a page by the path that its line has.
pub(crate) fn amounts(page: &Page<'_>) -> Vec<(String, f64)> {
    let mut amounts = Vec::new();
    let all = page.processes(|process| {
        let trees = process.explicit.iter().chain(&process.trees).chain(&process.flats);
        for tree in trees {
            for (path, item, _) in paths(tree, process.name) {
                amounts.push((path, tree.items[item].amount.number()));
            }
        }
        Ok::<(), std::convert::Infallible>(())
    });
    // What cannot be listed has no line either.
    let _ = all;
    amounts
}

/// Returns the nodes of a tree in the order of drawing: each with its process and path, and its
/// distance from the root.
fn paths(tree: &Tree, process: &str) -> Vec<(String, usize, usize)> {
    let mut path = String::new();
    let mut ends: Vec<usize> = Vec::new();
    let steps = tree.drawing_order().into_iter();
    steps
        .map(|step| {
            ends.truncate(step.depth);
            path.truncate(ends.last().copied().unwrap_or(0));
            path.push('/');
            path.push_str(&tree.items[step.item].name);
            ends.push(path.len());
            (format!("{process}{path}"), step.item, step.depth)
        })
        .collect()
}

fn write(
    tree: &mut Tree,
    process: &Process<'_>,
    turned: &HashSet<String>,
    lines: &mut Vec<Line>,
) -> io::Result<()> {
    let mut in_sight = Vec::new();
    let mut hidden_below = None;
    for (key, at, depth) in paths(tree, process.name) {
        if hidden_below.is_some_and(|above| depth > above) {
            continue;
        }
        let description = tree.description(process.report_tree, at);
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let (unit, item) = (tree.unit, &mut tree.items[at]);
        if turned.contains(&key) {
            item.shows_children = !item.shows_children;
            item.is_open = item.shows_children;
        }
        hidden_below = (!item.shows_children).then_some(depth);
        in_sight.push(Line {
            text: String::new(),
            path: Some(key),
            is_open: item.shows_children && !item.children.is_empty(),
            has_children: !item.children.is_empty(),
            depth,
            unit,
            description,
        });
    }
    let mut drawn = Vec::new();
    let medium = Medium { is_coloured: false, is_terminal: true };
    text::write_tree(tree, process.settings, medium, &mut drawn)?;
    let drawn = String::from_utf8_lossy(&drawn);
    lines.extend(
        in_sight
            .into_iter()
            .zip(drawn.lines())
            .map(|(line, text)| Line { text: text.into(), ..line }),
    );
    Ok(())
}
