//! Steps of a path: the static, cycle or block that is passed, and the pointer that leads there.

use super::roots::{ExternalRoot, HandleCount, RootName};
use super::{Node, Retention};
use crate::analysis::frames::BlockType;
use crate::analysis::scan::links::Link;
use crate::symbols::Members;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The static, cycle or block that is passed.
    pub place: StepPlace,
    /// The pointer in the previous block, if that is a block.
    pub pointer: Option<Pointer>,
    /// The number of blocks of the same kind that are left out before this one.
    pub alike: u64,
}

/// The place that a step of a path passes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepPlace {
    /// A static of the program.
    Static(String),
    /// Other memory outside the heap, such as a thread's stack.
    Outside(String),
    /// An external root: nothing in the dump points at the next block.
    External(ExternalRoot),
    /// A cycle at which nothing outside of it points. The next block is one of its blocks.
    Cycle {
        /// The number of its blocks.
        blocks: u64,
        /// The external root that holds it.
        external: ExternalRoot,
        /// The result of comparing its counts with its handles.
        handles: HandleCount,
    },
    /// The block with this index in the dump.
    Block(usize),
}

/// A word of a block that points into another.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pointer {
    /// The index of the block that contains the word.
    pub block: usize,
    /// The offset of the word in that block, in bytes.
    pub at: u64,
    /// The offset in the other block that it points at, in bytes.
    pub into: u64,
    /// The field that contains the word, if it is known: `subject::Document.path`.
    pub field: Option<String>,
}

/// The number of blocks of one kind that are listed in a row.
const MOST_IN_A_ROW: usize = 3;

impl Step {
    /// Returns the index of the block that is passed, if it is a block.
    #[must_use]
    pub fn block(&self) -> Option<usize> {
        match self.place {
            StepPlace::Block(block) => Some(block),
            _ => None,
        }
    }
}

impl Retention<'_> {
    /// Returns the steps along a path of nodes.
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
                    steps.push(self.external(node));
                }
                steps.push(Step {
                    pointer: before.and_then(|before| self.pointer(before, node)),
                    ..self.step(node)
                });
            }
            let alike = way[at..]
                .iter()
                .take_while(|&&next| kind(next).is_some() && kind(next) == kind(node))
                .count();
            at += 1;
            if alike > MOST_IN_A_ROW {
                // Only the first and the last of a row are listed.
                at += alike - 2;
                let last = way[at];
                steps.push(Step {
                    pointer: self.pointer(way[at - 1], last),
                    alike: alike as u64 - 2,
                    ..self.step(last)
                });
                at += 1;
            }
        }
        steps
    }

    /// Returns the step to a node, without the pointer.
    pub(crate) fn step(&self, node: u32) -> Step {
        let place = match self.node(node) {
            Node::Block(block) => StepPlace::Block(block),
            Node::Static(at) => {
                let RootName { name, is_static } = self.roots.statics[at].name.clone();
                if is_static { StepPlace::Static(name) } else { StepPlace::Outside(name) }
            }
            Node::Cycle(at) => {
                let cycle = &self.roots.cycles[at];
                let external = self.roots.external[cycle.external as usize].clone();
                let blocks = cycle.blocks.len() as u64;
                StepPlace::Cycle { blocks, external, handles: cycle.handles }
            }
            Node::Root => StepPlace::External(ExternalRoot::Unknown),
        };
        Step { place, pointer: None, alike: 0 }
    }

    fn external(&self, block: u32) -> Step {
        let root = self.roots.external_of(block);
        let root =
            root.map_or(ExternalRoot::Unknown, |at| self.roots.external[at as usize].clone());
        Step { place: StepPlace::External(root), pointer: None, alike: 0 }
    }

    /// Returns the first word of a block that points at the start of another, or else into it.
    fn pointer(&self, from: u32, to: u32) -> Option<Pointer> {
        let Node::Block(block) = self.node(from) else { return None };
        let mut found: Option<Link> = None;
        self.ranges.each_link_of(from, |link| {
            let is_better = found.is_none_or(|best| best.into > 0 && link.into == 0);
            if link.to == to && is_better {
                found = Some(link);
            }
        });
        let Link { at, into, .. } = found?;
        let field = self.reported_field(from, to);
        Some(Pointer { block, at: at.into(), into: into.into(), field })
    }

    /// Returns the reported field that leads to a block, if it must be a field of the block that
    /// points there: because no other block does, or by the type of that block.
    fn reported_field(&self, from: u32, to: u32) -> Option<String> {
        let ours = self.dump.extension.as_ref()?;
        let reports = self.dump.reports(&self.dump.blocks.get(to as usize)?)?;
        let block_type =
            &self.sites.get(self.dump.blocks.get(from as usize)?.kind.alloc).block_type;
        let is_only = self.is_only_source(from, to);
        reports.iter().find_map(|report| {
            let site = ours.reports.get(report)?;
            let (owner, field) = (site.type_name.as_ref()?, site.field.as_ref()?);
            let is_of =
                matches!(block_type, BlockType::Known(name) if name.contains(owner.as_str()));
            (is_of || is_only).then(|| format!("{owner}.{field}"))
        })
    }

    /// Returns the types of the boxed or shared values that these steps pass.
    ///
    /// With the offsets of their fields from debug information, [`name_fields`](Self::name_fields)
    /// names the steps.
    #[must_use]
    pub fn pointing_types<'s>(&self, steps: impl Iterator<Item = &'s Step>) -> Vec<String> {
        let types =
            steps.filter_map(|step| Some(self.value(step.pointer.as_ref()?.block)?.0.to_owned()));
        let mut types: Vec<String> = types.collect();
        types.sort_unstable();
        types.dedup();
        types
    }

    /// Names the fields that these steps pass, if `members` contains them.
    pub fn name_fields<'s>(&self, steps: impl Iterator<Item = &'s mut Step>, members: &Members) {
        for pointer in steps.filter_map(|step| step.pointer.as_mut()) {
            let Some((name, start)) = self.value(pointer.block) else { continue };
            let at = pointer.at.checked_sub(start);
            let field = members.get(name).zip(at).and_then(|(layout, at)| layout.field_at(at));
            pointer.field = field.map(|field| format!("{name}.{field}")).or(pointer.field.take());
        }
    }

    /// Returns the type of the value in a block, and the offset of the value: in a shared block it
    /// follows two counts.
    fn value(&self, block: usize) -> Option<(&str, u64)> {
        let BlockType::Known(name) =
            &self.sites.get(self.dump.blocks.at(block).kind.alloc).block_type
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
