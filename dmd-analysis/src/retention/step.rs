//! A step of a way: what is passed, and by which word of the one before.

use super::circle::Counted;
use super::roots::Outside;
use super::{Holds, Node};
use crate::analysis::types::BlockType;
use crate::symbols::Members;

/// A step of a way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// What is passed.
    pub place: Place,
    /// The word of the block before by which it leads here, if there is one.
    pub by: Option<Pointer>,
    /// So many more blocks of the same kind were passed in a row before this one.
    pub alike: u64,
}

/// What a way passes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A static of the program.
    Static(String),
    /// Nothing in the dump points at what follows, and this is known of who does.
    Outside(Outside),
    /// What follows is one of so many blocks that reach each other, at which nothing outside points; and what is known of who
    /// holds them.
    Cycle(u64, Outside, Counted),
    /// A block, by its place in the dump.
    Block(usize),
}

/// A word of a block that leads into another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pointer {
    /// The block that has the word, as its place in the dump.
    pub block: usize,
    /// Where the word is in it, in bytes.
    pub at: u64,
    /// How far into the other block it leads: 0 is its start.
    pub into: u64,
    /// The field that has the word, if that is known: `subject::Document.path`.
    pub field: Option<String>,
}

/// So many blocks of one kind are shown in a row.
const MOST_IN_A_ROW: usize = 3;

impl Step {
    /// The block that is passed, if it is one.
    #[must_use]
    pub fn block(&self) -> Option<usize> {
        match self.place {
            Place::Block(block) => Some(block),
            _ => None,
        }
    }
}

impl Holds<'_> {
    /// The steps along these nodes, of which each points at the next.
    pub(crate) fn steps(&self, way: &[u32]) -> Vec<Step> {
        let mut steps = Vec::new();
        let kind = |node: u32| match self.node(node) {
            Node::Block(block) => Some(self.kinds.of(self, block)),
            _ => None,
        };
        let mut at = 0;
        while let Some(&node) = way.get(at) {
            let before = at.checked_sub(1).map(|before| way[before]);
            if self.node(node) != Node::Root {
                if let (Node::Block(_), Some(Node::Root)) =
                    (self.node(node), before.map(|node| self.node(node)))
                {
                    steps.push(self.outside(node));
                }
                steps.push(Step {
                    by: before.and_then(|before| self.pointer(before, node)),
                    ..self.step(node)
                });
            }
            let alike = way[at..]
                .iter()
                .take_while(|&&next| kind(next).is_some() && kind(next) == kind(node))
                .count();
            at += 1;
            if alike > MOST_IN_A_ROW {
                // The first and the last are enough.
                at += alike - 2;
                let last = way[at];
                steps.push(Step {
                    by: self.pointer(way[at - 1], last),
                    alike: alike as u64 - 2,
                    ..self.step(last)
                });
                at += 1;
            }
        }
        steps
    }

    /// What a node is, without how it was come by.
    pub(crate) fn step(&self, node: u32) -> Step {
        let place = match self.node(node) {
            Node::Block(block) => Place::Block(block),
            Node::Static(at) => Place::Static(self.roots.statics[at].clone()),
            Node::Cycle(at) => {
                let cycle = &self.roots.cycles[at];
                let outside = self.roots.outside[cycle.outside as usize].clone();
                Place::Cycle(cycle.blocks.len() as u64, outside, cycle.counted)
            }
            Node::Root => Place::Outside(Outside::Unknown),
        };
        Step { place, by: None, alike: 0 }
    }

    fn outside(&self, block: u32) -> Step {
        let outside = self.roots.outside_of(block);
        let outside =
            outside.map_or(Outside::Unknown, |at| self.roots.outside[at as usize].clone());
        Step { place: Place::Outside(outside), by: None, alike: 0 }
    }

    /// The first word of a block that leads to the start of another, or else into it.
    fn pointer(&self, from: u32, to: u32) -> Option<Pointer> {
        let Node::Block(block) = self.node(from) else { return None };
        let mut found: Option<(u32, u32)> = None;
        self.ranges.each_link_of(self.dump, from, |link| {
            let is_better = found.is_none_or(|(_, into)| into > 0 && link.into == 0);
            if link.to == to && is_better {
                found = Some((link.at, link.into));
            }
        });
        let (at, into) = found?;
        let field = self.reported_field(from, to);
        Some(Pointer { block, at: at.into(), into: into.into(), field })
    }

    /// The field through which a reporter came to a block, if it must be one of the block that points there: nothing else does,
    /// or that one's type says so.
    fn reported_field(&self, from: u32, to: u32) -> Option<String> {
        let ours = self.dump.extension.as_ref()?;
        let reports = self.dump.reports(self.dump.blocks.get(to as usize)?)?;
        let block_type = &self.sites.get(self.dump.blocks.get(from as usize)?.alloc).block_type;
        let is_only = self.graph.sources(to) == [from];
        reports.iter().find_map(|report| {
            let site = ours.reports.get(report)?;
            let (owner, field) = (site.type_name.as_ref()?, site.field.as_ref()?);
            let is_of =
                matches!(block_type, BlockType::Known(name) if name.contains(owner.as_str()));
            (is_of || is_only).then(|| format!("{owner}.{field}"))
        })
    }

    /// The types whose values the blocks of these steps are, if they are boxed or shared: what their fields are called makes
    /// ways clearer, and debug information has it.
    #[must_use]
    pub fn pointing_types<'s>(&self, steps: impl Iterator<Item = &'s Step>) -> Vec<String> {
        let types =
            steps.filter_map(|step| Some(self.value(step.by.as_ref()?.block)?.0.to_owned()));
        let mut types: Vec<String> = types.collect();
        types.sort_unstable();
        types.dedup();
        types
    }

    /// Names the fields that are passed, where debug information tells.
    pub fn name_fields<'s>(&self, steps: impl Iterator<Item = &'s mut Step>, members: &Members) {
        for pointer in steps.filter_map(|step| step.by.as_mut()) {
            let Some((name, start)) = self.value(pointer.block) else { continue };
            let at = pointer.at.checked_sub(start);
            let fields = members.get(name).map_or(&[][..], Vec::as_slice);
            let before = fields.iter().filter(|(field, _)| Some(*field) <= at);
            if let Some((_, field)) = before.max_by_key(|(field, _)| *field) {
                pointer.field = Some(format!("{name}.{field}"));
            }
        }
    }

    /// The type of the value in a block, and where it begins: in a shared block, two counts come before it.
    fn value(&self, block: usize) -> Option<(&str, u64)> {
        let BlockType::Known(name) = &self.sites.get(self.dump.blocks[block].alloc).block_type
        else {
            return None;
        };
        let table = [("Box<", 0), ("Rc<", 16), ("Arc<", 16)];
        table.iter().find_map(|(prefix, start)| {
            let inner = name.strip_prefix(prefix)?.strip_suffix('>')?;
            (!inner.starts_with('[')).then_some((inner, *start))
        })
    }
}
