//! The roots of the tree: statics, and other memory outside the heap.

use rustc_hash::FxHashMap;

use crate::read::{Dump, Holder};
use crate::retention::NONE;
use crate::retention::roots::{RootName, direct_holder, static_name};

/// A static or other memory outside the heap, with its words that lead into blocks.
#[derive(Debug)]
pub(super) struct Source<'d> {
    pub(super) name: String,
    pub(super) is_static: bool,
    pub(super) module: String,
    pub(super) words: Vec<Word<'d>>,
}

/// A word of a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'d> {
    /// Its address in the module's file.
    pub(super) place: u64,
    pub(super) to: u64,
    /// Three words before it, itself, and three behind, if they are in the dump.
    pub(super) around: &'d [u64],
}

/// The sources, and the numbers of their nodes: after the blocks, before the external root.
#[derive(Debug)]
pub(super) struct Roots<'d> {
    pub(super) sources: Vec<Source<'d>>,
    pub(super) first: u32,
    pub(super) external: u32,
}

impl<'d> Roots<'d> {
    /// Collects the sources of a dump.
    pub(super) fn new(dump: &'d Dump) -> Self {
        let mut sources: Vec<Source<'d>> = Vec::new();
        let mut numbers: FxHashMap<(RootName, String), usize> = FxHashMap::default();
        let ours = dump.extension.as_ref();
        let words = ours.into_iter().flat_map(|ours| &ours.statics);
        let words = words.map(|word| (&word.place, word.to, &*word.around));
        // Dumps of dark matter have the holders of blocks alone.
        let held = dump.blocks.iter().filter_map(|block| match direct_holder(dump, block)? {
            Holder::Static(place) => Some((place, block.addr.map_or(0, u64::from), &[][..])),
            Holder::Skipped(_) => None,
        });
        for (place, to, around) in words.chain(held) {
            let key = (static_name(place), place.module.clone());
            let at = *numbers.entry(key).or_insert_with_key(|(name, module)| {
                let RootName { mut name, is_static } = name.clone();
                if let Some(thread) = thread_name(dump, &name).filter(|_| !is_static) {
                    name = format!("{name} ({thread})");
                }
                sources.push(Source { name, is_static, module: module.clone(), words: Vec::new() });
                sources.len() - 1
            });
            let words = &mut sources[at].words;
            if !words
                .iter()
                .rev()
                .take(8)
                .any(|known| known.place == place.offset && known.to == to)
            {
                words.push(Word { place: place.offset, to, around });
            }
        }
        let first = u32::try_from(dump.blocks.len()).unwrap_or(NONE);
        let external = first.saturating_add(u32::try_from(sources.len()).unwrap_or(NONE));
        Self { sources, first, external }
    }

    /// Returns the number of all nodes: blocks, sources, and the external root.
    pub(super) fn nodes(&self) -> usize {
        self.external as usize + 1
    }
}

/// Returns the name of the thread that a root's name has the number of.
fn thread_name<'d>(dump: &'d Dump, root: &str) -> Option<&'d str> {
    let (_, number) = root.rsplit_once("thread ")?;
    let number: u64 = number.parse().ok()?;
    let mut threads = dump.extension.iter().flat_map(|ours| &ours.threads);
    threads.find(|thread| thread.tid == Some(number))?.name.as_deref()
}
