//! The roots of the tree: statics, threads with their functions and variables, and other memory
//! outside the heap.

use rustc_hash::FxHashMap;

use crate::read::{Dump, Holder, StaticPlace};
use crate::retention::NONE;
use crate::retention::roots::{RootName, direct_holder, static_name};
use crate::symbols::types::{TypeId, Types};

use super::stack_places::{Part, StackPlace, StackPlaces, THREAD_LOCALS, Variable};

/// A static or other memory outside the heap, with its words that lead into blocks.
#[derive(Debug)]
pub(super) struct Source<'d> {
    pub(super) name: String,
    pub(super) is_static: bool,
    pub(super) module: String,
    /// The number of the source that it is a part of: a thread, or a function of one.
    pub(super) parent: Option<u32>,
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
    /// The type of the function's variable that it is in, and the offset in that.
    pub(super) variable: Option<(TypeId, u64)>,
    /// True for a word of a stack or a register that is not of a function of the program.
    pub(super) is_of_library: bool,
}

/// The sources, and the numbers of their nodes: after the blocks, before the external root.
#[derive(Debug)]
pub(super) struct Roots<'d> {
    pub(super) sources: Vec<Source<'d>>,
    pub(super) first: u32,
    pub(super) external: u32,
    numbers: FxHashMap<Key, u32>,
}

/// The identity of a source.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A static or other memory, and the module.
    Named(RootName, String),
    Thread(u64),
    /// A part of another source.
    Part(u32, String),
}

impl<'d> Roots<'d> {
    /// Collects the sources of a dump.
    pub(super) fn new(dump: &'d Dump, types: &'d Types) -> Self {
        let mut roots =
            Self { sources: Vec::new(), first: 0, external: 0, numbers: FxHashMap::default() };
        let stacks = StackPlaces::new(dump, types);
        let ours = dump.extension.as_ref();
        let words = ours.into_iter().flat_map(|ours| &ours.statics);
        let words = words.map(|word| (&word.place, word.to, &*word.around));
        // Dumps of dark matter have the holders of blocks alone.
        let held = dump.blocks.iter().filter_map(|block| match direct_holder(dump, &block)? {
            Holder::Static(place) => Some((place, block.addr.map_or(0, u64::from), &[][..])),
            Holder::Skipped(_) => None,
        });
        for (place, to, around) in words.chain(held) {
            let found = stacks.find(place);
            let is_of_library = found.as_ref().is_some_and(|found| found.is_of_library);
            let (source, variable) = match found {
                Some(found) => roots.stack_source(dump, found),
                None => (roots.named_source(dump, place), None),
            };
            let words = &mut roots.sources[source as usize].words;
            if !words
                .iter()
                .rev()
                .take(8)
                .any(|known| known.place == place.offset && known.to == to)
            {
                let place = place.offset;
                words.push(Word { place, to, around, variable, is_of_library });
            }
        }
        roots.first = u32::try_from(dump.blocks.len()).unwrap_or(NONE);
        let sources = u32::try_from(roots.sources.len()).unwrap_or(NONE);
        roots.external = roots.first.saturating_add(sources);
        roots
    }

    /// Returns the source of a static or of other memory.
    fn named_source(&mut self, dump: &Dump, place: &StaticPlace) -> u32 {
        let RootName { mut name, is_static } = static_name(place);
        let key = Key::Named(RootName { name: name.clone(), is_static }, place.module.clone());
        if !is_static && let Some((_, number)) = name.rsplit_once("thread ") {
            let thread = number.parse().ok().and_then(|number| thread_name(dump, number));
            name.extend(thread.map(|thread| format!(" ({thread})")));
        }
        let module = place.module.clone();
        self.number(key, Source { name, is_static, module, parent: None, words: Vec::new() })
    }

    /// Returns the source of a word of a thread, and the place in its variable.
    fn stack_source(
        &mut self,
        dump: &Dump,
        StackPlace { thread, part, .. }: StackPlace<'_>,
    ) -> (u32, Option<(TypeId, u64)>) {
        let own = thread_name(dump, thread).map(|name| format!(" ({name})"));
        let of_process = |name: String, parent| Source {
            name,
            is_static: false,
            module: StaticPlace::PROCESS.to_owned(),
            parent,
            words: Vec::new(),
        };
        let name = format!("thread {thread}{}", own.unwrap_or_default());
        let thread = self.number(Key::Thread(thread), of_process(name, None));
        let mut part_of = |whole: u32, name: &str| {
            self.number(Key::Part(whole, name.to_owned()), of_process(name.to_owned(), Some(whole)))
        };
        match part {
            Part::Variable { function, variable: Variable { name, of, offset } } => {
                let function = part_of(thread, function);
                (part_of(function, &name), Some((of, offset)))
            }
            Part::Function(function) => (part_of(thread, function), None),
            Part::Registers => (part_of(thread, "registers"), None),
            Part::ThreadLocals => (part_of(thread, THREAD_LOCALS), None),
            Part::Rest => (part_of(thread, "stack and thread-locals"), None),
        }
    }

    /// Returns the number of a source, after adding it if it is new.
    fn number(&mut self, key: Key, source: Source<'d>) -> u32 {
        let next = u32::try_from(self.sources.len()).unwrap_or(NONE);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.sources.push(source);
        }
        number
    }

    /// Returns the node that a source hangs on: the source that it is a part of, or the external
    /// root.
    pub(super) fn holder_of(&self, source: &Source<'_>) -> u32 {
        source.parent.map_or(self.external, |parent| self.first + parent)
    }

    /// Returns the node of the root that a root is a part of, or else the root's own.
    pub(super) fn whole(&self, mut node: u32) -> u32 {
        let parent = |node: u32| self.sources.get((node - self.first) as usize)?.parent;
        while let Some(whole) = parent(node) {
            node = self.first + whole;
        }
        node
    }

    /// Returns the threads but the first one: the thread pointer, and the node.
    pub(super) fn threads(&self, dump: &Dump) -> impl Iterator<Item = (u64, u32)> {
        let known = dump.extension.iter().flat_map(|ours| &ours.threads);
        // The kernel numbers threads in the order of their starts, but for a start over from 1.
        let pid = dump.extension.as_ref().and_then(|ours| ours.pid).map(u64::from);
        let first = pid.or(known.clone().filter_map(|thread| thread.tid).min());
        known.filter(move |thread| thread.tid != first).filter_map(|thread| {
            let number = *self.numbers.get(&Key::Thread(thread.tid?))?;
            let pointer = u64::from_str_radix(thread.pointer.as_ref()?, 16).ok()?;
            Some((pointer, self.first + number))
        })
    }

    /// Returns the number of all nodes: blocks, sources, and the external root.
    pub(super) fn nodes(&self) -> usize {
        self.external as usize + 1
    }
}

/// Returns the name of the thread with this number of the operating system.
fn thread_name(dump: &Dump, number: u64) -> Option<&str> {
    let mut threads = dump.extension.iter().flat_map(|ours| &ours.threads);
    threads.find(|thread| thread.tid == Some(number))?.name.as_deref()
}
