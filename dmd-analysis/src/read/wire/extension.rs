//! The extension's JSON.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::read::block::{HolderId, TraceId};
use crate::read::extension::{
    Extension, Module, ReportSite, Sampled, Scope, SpanIds, Sum, Thread, Wrong, WrongKind,
};
use crate::read::holder::{FieldPlace, StaticPlace, StaticWord, WireHolder};
use crate::read::keys::Keys;
use crate::read::model::Symbol;
use crate::read::stack_frame::StackFrame;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(crate) struct WireExtension {
    pub(crate) version: u64,
    pub(crate) needs: Vec<String>,
    pub(crate) scanned_blocks: Option<u64>,
    program: Option<String>,
    pid: Option<u32>,
    uptime_ms: Option<u64>,
    reason: Option<String>,
    #[serde(rename = "allRoots")]
    has_all_roots: bool,
    unwinder: Option<String>,
    times: bool,
    stacks: u64,
    walked_stacks: u64,
    truncated_stacks: u64,
    lost_stacks: u64,
    mode: Option<String>,
    /// The notes of the writer, which become notes of the dump.
    pub(crate) notes: Vec<String>,
    heap_allocated: Option<u64>,
    untracked: Sum,
    before_tracking: Sum,
    reported_untracked: u64,
    unmeasured: i64,
    tracker_bytes: Option<u64>,
    sampled: Option<Sampled>,
    born_during: Sum,
    modules: Vec<Module>,
    threads: Vec<Thread>,
    scopes: Vec<WireScope>,
    spans: Vec<WireSpan>,
    reports: BTreeMap<String, ReportSite>,
    wrong: Vec<WireWrong>,
    features: Vec<String>,
    measured: Vec<FieldPlace>,
    skipped: Vec<FieldPlace>,
    holders: BTreeMap<String, WireHolder>,
    reported_statics: Vec<StaticPlace>,
    statics: Vec<StaticWord>,
    frames: Vec<StackFrame>,
    /// The symbols of frames, by the keys of the frames.
    pub(crate) symbols: BTreeMap<String, WireSymbol>,
}

/// A scope: the number of the scope around it, and its name.
#[derive(Deserialize)]
struct WireScope(u16, String);

/// A link of a scope to a span: the scope's number, and the identifiers of trace and span.
#[derive(Deserialize)]
struct WireSpan(u16, String, String);

impl WireSpan {
    /// Returns the link, if both identifiers are hexadecimal numbers of their length.
    fn link(&self) -> Option<(u16, SpanIds)> {
        let WireSpan(scope, trace, span) = self;
        Some((*scope, SpanIds { trace: bytes_of_hex(trace)?, span: bytes_of_hex(span)? }))
    }
}

/// Returns the bytes of a hexadecimal number with this many of them.
fn bytes_of_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_whole = text.len() == 2 * N && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate().filter(|_| is_whole) {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    is_whole.then_some(bytes)
}

/// A symbol of a self-contained dump.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct WireSymbol {
    function: String,
    name: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    inlined: bool,
    folded: bool,
    module: Option<String>,
}

impl From<WireSymbol> for Symbol {
    fn from(wire: WireSymbol) -> Self {
        let WireSymbol { function, name, file, line, inlined, folded, module } = wire;
        let [name, file, module] = [name, file, module].map(|text| text.map(Into::into));
        Self { function: function.into(), name, file, line, inlined, folded, module }
    }
}

#[derive(Deserialize)]
struct WireWrong {
    is: WrongKind,
    #[serde(default)]
    addr: String,
    #[serde(default)]
    claimed: u64,
    rep: Option<String>,
    #[serde(default = "one")]
    num: u64,
    usable: Option<u64>,
    req: Option<u64>,
    alloc: Option<String>,
    #[serde(default, rename = "blockReps")]
    block_reports: Vec<String>,
    module: Option<String>,
}

fn one() -> u64 {
    1
}

impl WireExtension {
    /// Returns the extension with keys replaced by numbers.
    pub(crate) fn resolve(self, traces: &mut Keys, holders: &mut Keys) -> Extension {
        let mut id = |key: String| TraceId(traces.number(key.as_bytes()));
        let reports = self.reports.into_iter().map(|(key, site)| (id(key), site)).collect();
        let mut wrong = |wire: WireWrong| Wrong {
            kind: wire.is,
            addr: wire.addr,
            claimed: wire.claimed,
            reporter: wire.rep.map(&mut id),
            num: wire.num,
            usable: wire.usable,
            req: wire.req,
            alloc: wire.alloc.map(&mut id),
            block_reports: wire.block_reports.into_iter().map(&mut id).collect(),
            module: wire.module,
        };
        let mut holder_id = |key: String| HolderId(holders.number(key.as_bytes()));
        let held_by = self.holders.into_iter().map(|(key, wire)| (holder_id(key), wire.into()));
        let scopes = self.scopes.into_iter().map(|WireScope(outer, name)| Scope { outer, name });
        Extension {
            wrong: self.wrong.into_iter().map(&mut wrong).collect(),
            reports,
            program: self.program,
            pid: self.pid,
            uptime_ms: self.uptime_ms,
            reason: self.reason,
            has_all_roots: self.has_all_roots,
            unwinder: self.unwinder,
            times: self.times,
            stacks: self.stacks,
            walked_stacks: self.walked_stacks,
            truncated_stacks: self.truncated_stacks,
            lost_stacks: self.lost_stacks,
            mode: self.mode,
            heap_allocated: self.heap_allocated,
            // Of a profile, `untracked` also counts unsampled blocks.
            untracked: match self.sampled {
                Some(_) => self.before_tracking,
                None => self.untracked,
            },
            reported_untracked: self.reported_untracked,
            unmeasured: self.unmeasured,
            tracker_bytes: self.tracker_bytes,
            sampled: self.sampled,
            allocated_during: self.born_during,
            modules: self.modules,
            threads: self.threads,
            scopes: scopes.collect(),
            spans: self.spans.iter().filter_map(WireSpan::link).collect(),
            features: self.features,
            measured: self.measured,
            skipped: self.skipped,
            holders: held_by.collect(),
            reported_statics: self.reported_statics,
            statics: self.statics,
            frames: self.frames,
        }
    }
}
