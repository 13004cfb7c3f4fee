//! The key of a block on an axis, by the attributes that its source looks up.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::ranges::{age_group, size_class};
use super::{Axis, ReportState, StackCut};
use crate::number::commas;

/// The property that all blocks of a group share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Key {
    /// A text.
    Text(Arc<str>),
    /// The frames of their stacks.
    Stack(Arc<[Arc<str>]>),
    /// The name of a group that exists whatever the blocks are.
    Fixed(&'static str),
}

impl Key {
    /// Returns the key of a group that is named by a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Key::Text(text.into())
    }

    /// Returns the key as one line.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Key::Text(text) => text.to_string(),
            Key::Stack(frames) => frames.join(" < "),
            Key::Fixed(name) => (*name).to_owned(),
        }
    }
}

/// A source of blocks that looks up their attributes.
///
/// A source that cannot look up an attribute leaves the method out: the attribute is unknown then.
pub trait Attributes {
    /// A block, or a group of blocks that are alike.
    type Block: ?Sized;

    /// Returns the usable bytes of one block.
    fn size(&self, block: &Self::Block) -> u64;

    /// Returns how often the block is reported.
    fn state(&self, block: &Self::Block) -> ReportState;

    /// Returns the paths of the reports that count the block, the first report first.
    fn reporters(&mut self, block: &Self::Block) -> Vec<String>;

    /// Returns the types and fields that report the block, the first report first: `Cache.entries`.
    fn fields(&mut self, block: &Self::Block) -> Vec<String>;

    /// Returns the names of the scope of the block and of those around it, the outermost first.
    fn scopes(&mut self, block: &Self::Block) -> Vec<String>;

    /// Returns the thread that allocated the block, as [`thread_text`] forms it.
    fn thread(&mut self, block: &Self::Block) -> Option<String>;

    /// Returns the name of the type of the block.
    fn type_name(&mut self, block: &Self::Block) -> Option<String>;

    /// Returns the frames of the stack that allocated the block; `None` if there are none.
    fn stack(&mut self, block: &Self::Block, cut: StackCut) -> Option<Arc<[Arc<str>]>>;

    /// Returns the innermost frame of the program's own code in that stack, or else the innermost.
    fn site(&mut self, block: &Self::Block) -> Option<String> {
        let _ = block;
        None
    }

    /// Returns the source file of the innermost frame of the program's own code.
    fn file(&mut self, block: &Self::Block) -> Option<String> {
        let _ = block;
        None
    }

    /// Returns the crate whose code allocated the block.
    fn crate_name(&mut self, block: &Self::Block) -> Option<String> {
        let _ = block;
        None
    }

    /// Returns the milliseconds since the allocation of the block.
    fn age_ms(&self, block: &Self::Block) -> Option<u64> {
        let _ = block;
        None
    }
}

/// Returns the key of a block on an axis; `None` if the block has none.
#[must_use]
pub fn key<A: Attributes + ?Sized>(of: &mut A, block: &A::Block, axis: &Axis) -> Option<Key> {
    let text = |text: String| Key::Text(text.into());
    match axis {
        Axis::Reporter { depth: None } => join(&of.reporters(block), " and "),
        Axis::Reporter { depth: Some(depth) } => {
            join(&distinct(cut(of.reporters(block), *depth)), " and ")
        }
        Axis::Type => of.type_name(block).map(text),
        Axis::Stack(cut) => of.stack(block, *cut).map(Key::Stack),
        Axis::Site => of.site(block).map(text),
        Axis::State => Some(Key::Fixed(of.state(block).name())),
        Axis::File => of.file(block).map(text),
        Axis::Field => join(&of.fields(block), " and "),
        Axis::Thread => of.thread(block).map(text),
        Axis::Scope => join(&of.scopes(block), " > "),
        Axis::Crate => of.crate_name(block).map(text),
        Axis::Size => Some(text(format!("{} bytes", commas(of.size(block).into())))),
        Axis::SizeClass => Some(text(size_class(of.size(block)))),
        Axis::Age { edges } => of.age_ms(block).map(|age| text(age_group(edges, age))),
    }
}

/// Returns the text of a thread. Names are not unique, so the number follows: `worker (2)`.
#[must_use]
pub fn thread_text(name: Option<&str>, number: u32) -> String {
    match name {
        Some(name) => format!("{name} ({number})"),
        None => format!("thread {number}"),
    }
}

/// Returns the names without those that occurred before.
#[must_use]
pub fn distinct(names: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Cuts paths after `depth` segments.
fn cut(mut paths: Vec<String>, depth: NonZeroU32) -> Vec<String> {
    for path in &mut paths {
        let end = path.match_indices('/').nth(depth.get() as usize - 1).map(|(end, _)| end);
        path.truncate(end.unwrap_or(path.len()));
    }
    paths
}

fn join(names: &[String], separator: &str) -> Option<Key> {
    (!names.is_empty()).then(|| Key::Text(names.join(separator).into()))
}
