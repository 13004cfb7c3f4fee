//! Allocation sites: the frames that allocated a block as text, and the block's type.

use std::collections::HashMap;

use super::block_type::BlockType;
use super::frame_format::Style;
use super::parts::Parts;
use super::trim::without_library;
use crate::read::{Dump, TraceId};

/// An allocation site: the part of a stack that identifies where a block was allocated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Site {
    /// The type of its blocks, as far as the frames show it.
    pub block_type: BlockType,
    /// The frames, innermost first, without the libraries in front: `subject::Lexicon::intern
    /// (src/lexicon.rs:41)`.
    pub frames: Vec<String>,
    /// The first frame that is the program's own code, if there is one.
    pub own: Option<String>,
    /// The crate of the innermost frame that is not a library's.
    pub krate: Option<String>,
    /// The crate that was called there, if the innermost frame is not the program's own.
    pub through: Option<String>,
}

/// The allocation sites of a dump, by the stacks of the dump.
#[derive(Debug)]
pub(crate) struct Sites {
    sites: Vec<Site>,
    by_trace: Vec<usize>,
}

impl Sites {
    /// Finds the site of every stack; stacks with equal text share one.
    pub(crate) fn new(dump: &Dump, max_frames: usize, style: &Style<'_>) -> Self {
        let unknown = Site {
            block_type: BlockType::Unknown,
            frames: Vec::new(),
            own: None,
            krate: None,
            through: None,
        };
        let mut numbers = HashMap::from([(unknown.clone(), 0)]);
        let mut sites = vec![unknown];
        let by_trace = (0..dump.trace_count()).map(|index| {
            let site =
                site(dump, TraceId(u32::try_from(index).unwrap_or(u32::MAX)), max_frames, style);
            *numbers.entry(site).or_insert_with_key(|site| {
                sites.push(site.clone());
                sites.len() - 1
            })
        });
        let by_trace = by_trace.collect();
        Self { sites, by_trace }
    }

    /// Returns the site of a stack, or the unknown site.
    pub(crate) fn get(&self, trace: Option<TraceId>) -> &Site {
        &self.sites[self.of(trace)]
    }

    /// Returns all sites in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter()
    }

    /// Returns the site with this number.
    pub(crate) fn numbered(&self, number: usize) -> &Site {
        &self.sites[number]
    }

    /// Returns the number of a stack's site; 0 if there is no stack.
    pub(crate) fn of(&self, trace: Option<TraceId>) -> usize {
        trace.map_or(0, |trace| self.by_trace[trace.index()])
    }
}

/// Returns the crate to which a block with this stack belongs: the crate of the innermost function
/// that is not a library's. `None` if the functions do not show it.
#[must_use]
pub fn crate_of(dump: &Dump, trace: TraceId) -> Option<&str> {
    without_library(dump, dump.trace(trace)).first().and_then(Parts::crate_name)
}

fn site(dump: &Dump, trace: TraceId, max_frames: usize, style: &Style<'_>) -> Site {
    let all = dump.trace(trace);
    let shown = without_library(dump, all);
    let own = shown.iter().position(Parts::is_own);
    let through = own.filter(|&at| at > 0).and_then(|_| shown.first()?.crate_name());
    let indent = FRAME_INDENT;
    Site {
        block_type: BlockType::of_trace(dump, all),
        frames: lines(&shown, max_frames, style),
        own: own.map(|at| style.frame(&shown[at], indent)),
        krate: shown.first().and_then(Parts::crate_name).map(str::to_owned),
        through: through.map(str::to_owned),
    }
}

/// Returns the lines of a stack. A recursive function takes one line, however deep the recursion
/// is.
fn lines(frames: &[Parts<'_>], max_frames: usize, style: &Style<'_>) -> Vec<String> {
    const AGAIN: &str = ", recursively";
    let mut lines: Vec<String> = Vec::new();
    for parts in frames {
        let line = style.frame(parts, FRAME_INDENT);
        let is_full = lines.len() == max_frames;
        match lines.last_mut() {
            Some(last) if last.strip_suffix(AGAIN) == Some(&*line) => {}
            Some(last) if *last == line => last.push_str(AGAIN),
            _ if is_full => break,
            _ => lines.push(line),
        }
    }
    lines
}

/// Columns before a frame: `    #01: `.
pub(super) const FRAME_INDENT: usize = 9;
