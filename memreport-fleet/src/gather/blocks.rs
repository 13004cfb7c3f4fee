//! Rows of block groups and of their stacks.

use std::collections::HashMap;

use memreport_analysis::export::Heap;
use memreport_analysis::heap::{Group, GroupFrame};
use sha2::{Digest, Sha256};

use super::snapshot::whole;
use super::{Batch, Snapshot};
use crate::table::Value;

/// A stack of a heap, as rows refer to it.
struct KnownStack {
    id: i64,
    site: Option<String>,
}

/// Adds a row for each group of blocks, and one for each stack that the batch does not have.
pub(super) fn add(batch: &mut Batch, snapshot: &Snapshot, heap: &Heap) {
    let mut stacks: HashMap<u32, KnownStack> = HashMap::new();
    for group in heap.groups() {
        let stack = (!group.is_untracked).then(|| {
            &*stacks.entry(group.stack).or_insert_with(|| {
                let frames: Vec<GroupFrame<'_>> = heap.stack_frames(group.stack).collect();
                let id = stack_id(&frames);
                if batch.known.insert(id) {
                    add_stack(batch, snapshot, id, &frames);
                }
                let site = heap.site(group.stack).filter(|frame| frame.offset.is_none());
                KnownStack { id, site: site.as_ref().map(text) }
            })
        });
        add_group(batch, snapshot, &group, stack);
    }
}

fn add_group(
    batch: &mut Batch,
    snapshot: &Snapshot,
    group: &Group<'_>,
    stack: Option<&KnownStack>,
) {
    let reporters: Vec<Option<&str>> = group.reporters.iter().copied().map(Some).collect();
    let number = |sum: i128| Value::Int(whole(sum));
    let live = group.live.unwrap_or_default();
    let [allocated_blocks, allocated_bytes] = match &group.allocated {
        Some(sum) => [number(sum.blocks), number(sum.usable())],
        None => [Value::Null, Value::Null],
    };
    let values = [
        stack.map(|stack| stack.id).into(),
        stack.and_then(|stack| stack.site.as_deref()).into(),
        group.block_type.into(),
        group.scope.as_deref().into(),
        group.thread.into(),
        Value::Text(group.state.name()),
        Value::Texts(&reporters),
        Some(group.size).into(),
        group.age_ms.into(),
        number(live.blocks),
        number(live.req),
        number(live.slop),
        allocated_blocks,
        allocated_bytes,
        Value::Bool(group.is_untracked),
    ];
    batch.blocks.push(&snapshot.row(values));
}

fn add_stack(batch: &mut Batch, snapshot: &Snapshot, id: i64, frames: &[GroupFrame<'_>]) {
    let texts = |of: fn(&GroupFrame<'_>) -> Option<String>| -> Vec<Option<String>> {
        frames.iter().map(of).collect()
    };
    let functions = texts(|frame| Some(frame.function.to_owned()));
    let files = texts(|frame| frame.file.map(str::to_owned));
    let modules = texts(|frame| frame.module.map(str::to_owned));
    let build_ids = texts(|frame| frame.build_id.map(str::to_owned));
    let number = |offset: u64| i64::try_from(offset).ok();
    let lines: Vec<_> = frames.iter().map(|frame| frame.line.map(i64::from)).collect();
    let offsets: Vec<_> = frames.iter().map(|frame| frame.offset.and_then(number)).collect();
    let [functions, files, modules, build_ids] =
        [&functions, &files, &modules, &build_ids].map(|list| borrowed(list));
    let values = [
        Value::Int(id),
        Value::Texts(&functions),
        Value::Texts(&files),
        Value::Ints(&lines),
        Value::Texts(&modules),
        Value::Texts(&build_ids),
        Value::Ints(&offsets),
    ];
    batch.stacks.push(&snapshot.row(values));
}

/// Returns a list of texts as a row takes it.
pub(crate) fn borrowed(list: &[Option<String>]) -> Vec<Option<&str>> {
    list.iter().map(Option::as_deref).collect()
}

/// Returns a frame as a text, `shop::Cart::add (src/cart.rs:7)`.
pub(crate) fn text(frame: &GroupFrame<'_>) -> String {
    match (frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{} ({file}:{line})", frame.function),
        (Some(file), None) => format!("{} ({file})", frame.function),
        (None, _) => frame.function.to_owned(),
    }
}

/// Returns the number of a stack, the same in all files and on all hosts.
///
/// Frames without symbols count by build id and offset: where a module was loaded from does not
/// matter.
fn stack_id(frames: &[GroupFrame<'_>]) -> i64 {
    let mut hash = Sha256::new();
    for frame in frames {
        match (frame.build_id, frame.offset) {
            (Some(build_id), Some(offset)) => hash.update(format!("@{build_id}+{offset:x}\n")),
            _ => hash.update(format!("{}\n", text(frame))),
        }
    }
    let bytes = hash.finalize();
    i64::from_le_bytes(bytes[..8].try_into().unwrap_or_default())
}
