//! Converts the sites of a recording to a dump, whose frames can be symbolicated.

use std::iter;

use rustc_hash::FxHashMap;
use serde_json::json;

use super::{Recording, Site};
use crate::read::block::list::Numbers;
use crate::read::{BlockKind, Dump, Frame, FrameId, ReadError, TraceId, read_slice};

impl Recording {
    /// Returns a dump with an empty block for each site, in the order of their numbers, after one
    /// without a site.
    ///
    /// # Errors
    ///
    /// If the reader of dumps does not accept the names of the recording.
    pub(crate) fn site_dump(&self) -> Result<Dump, ReadError> {
        let own = self.own_fields("where blocks of the recording were allocated", &json!({}));
        let mut dump = read_slice(&self.dump_of(&[], iter::empty(), &own))?;
        let mut frames: FxHashMap<u64, FrameId> = FxHashMap::default();
        let mut traces: FxHashMap<&[u64], TraceId> = FxHashMap::default();
        let unknown = BlockKind::default();
        push_empty(&mut dump, unknown.clone());
        for site in self.sites.values() {
            let Site { thread, stack, scope } = site;
            let alloc = (!stack.is_empty()).then(|| {
                *traces.entry(stack).or_insert_with(|| {
                    let frame = |address: &u64| {
                        *frames.entry(*address).or_insert_with(|| {
                            let text = self.frame(*address).into();
                            dump.frames.push(Frame { text, symbol: None });
                            FrameId(number(dump.frames.len()))
                        })
                    };
                    dump.traces.push(stack.iter().map(frame).collect());
                    TraceId(number(dump.traces.len()))
                })
            });
            let kind = BlockKind { alloc, thread: Some(*thread), scope: *scope, ..unknown.clone() };
            push_empty(&mut dump, kind);
        }
        Ok(dump)
    }
}

fn push_empty(dump: &mut Dump, kind: BlockKind) {
    let kind = dump.blocks.add_kind(kind);
    dump.blocks.push(Numbers { req: 0, slop: 0, addr: None }, 1, kind);
}

/// Returns the number of the last of so many frames or stacks.
fn number(count: usize) -> u32 {
    u32::try_from(count - 1).unwrap_or(u32::MAX)
}
