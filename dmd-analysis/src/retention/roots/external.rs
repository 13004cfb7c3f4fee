//! External roots: the holders of blocks that nothing in the dump points at.

use rustc_hash::FxHashMap;

use crate::analysis::frames::{Style, reporter};
use crate::read::{Block, Dump, Holder, TraceId};
use crate::retention::NONE;

/// The holder of a block outside of the dump: a reporter or a skipped field that reaches the block,
/// or an unknown one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExternalRoot {
    /// A reporter reaches it: its path, and the field.
    Reported(String),
    /// A field that its type skips reaches it.
    Skipped(String),
    /// Unknown: a stack, a library, or nothing.
    Unknown,
    /// Nothing, in a dump with all roots.
    Nothing,
}

impl ExternalRoot {
    /// Returns the external root in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Reported(by) => format!("reported by {by}"),
            Self::Skipped(field) => format!("skipped field {field}"),
            Self::Unknown => "held from a stack or a library, or leaked".to_owned(),
            Self::Nothing => "leaked: nothing refers to it".to_owned(),
        }
    }
}

/// Returns the holder of an unreported block if a word of the holder points at the block.
pub(crate) fn direct_holder<'d>(dump: &'d Dump, block: &Block<'_>) -> Option<&'d Holder> {
    let id = block.kind.held_by.filter(|_| !block.kind.is_held_through)?;
    dump.extension.as_ref()?.holders.get(&id)
}

/// The external roots of a dump, interned.
pub(super) struct ExternalRoots<'d> {
    dump: &'d Dump,
    style: &'d Style<'d>,
    /// By the first report of a block, so that each is described only once.
    known: FxHashMap<Option<TraceId>, u32>,
    pub(super) list: Vec<ExternalRoot>,
}

impl<'d> ExternalRoots<'d> {
    pub(super) fn new(dump: &'d Dump, style: &'d Style<'d>) -> Self {
        Self { dump, style, known: FxHashMap::default(), list: Vec::new() }
    }

    /// Interns the external root of a block.
    pub(super) fn of_block(&mut self, block: u32) -> u32 {
        let block = self.dump.blocks.at(block as usize);
        if let Some(report) = self.dump.reports(&block).and_then(<[TraceId]>::first) {
            if let Some(&number) = self.known.get(&Some(*report)) {
                return number;
            }
            let words = reporter(self.dump, Some(*report), self.style);
            let number = self.number(ExternalRoot::Reported(words));
            self.known.insert(Some(*report), number);
            return number;
        }
        match direct_holder(self.dump, &block) {
            Some(Holder::Skipped(field)) => {
                let (file, line) = (self.style.file(&field.file), field.line);
                let words = format!("{}.{} ({file}:{line})", field.type_name, field.field);
                self.number(ExternalRoot::Skipped(words))
            }
            _ => match self.known.get(&None) {
                Some(&number) => number,
                None => {
                    let ours = self.dump.extension.as_ref();
                    let has_all = ours.is_some_and(|ours| ours.has_all_roots);
                    let root = if has_all { ExternalRoot::Nothing } else { ExternalRoot::Unknown };
                    let number = self.number(root);
                    self.known.insert(None, number);
                    number
                }
            },
        }
    }

    /// Interns the external root of a cycle: of its blocks, one that a reporter reaches, or else
    /// one of a skipped field.
    pub(super) fn of_cycle(&mut self, blocks: &[u32]) -> u32 {
        let numbers: Vec<u32> = blocks.iter().map(|&block| self.of_block(block)).collect();
        numbers.into_iter().min_by_key(|&number| &self.list[number as usize]).unwrap_or(0)
    }

    fn number(&mut self, root: ExternalRoot) -> u32 {
        let at = self.list.iter().position(|known| *known == root).unwrap_or_else(|| {
            self.list.push(root);
            self.list.len() - 1
        });
        u32::try_from(at).unwrap_or(NONE)
    }
}
