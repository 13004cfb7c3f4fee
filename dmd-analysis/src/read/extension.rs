//! What our tracker writes beyond Mozilla's format, under the key `memreport`.

use std::collections::HashMap;

use serde::Deserialize;

use super::holder::WireHolder;
use super::keys::Keys;
use super::{FieldPlace, Holder, HolderId, StaticPlace, StaticWord, Symbol, TraceId};

/// What our tracker adds to a dump.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Extension {
    /// Path of the executable.
    pub program: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Milliseconds since the tracker woke.
    pub uptime_ms: Option<u64>,
    /// Why the dump was taken, as a phrase.
    pub reason: Option<String>,
    /// How stacks were taken, as a phrase.
    pub unwinder: Option<String>,
    /// Whether blocks get the time at which they are made, so that those from then on have an age.
    pub times: bool,
    /// Stacks in the table.
    pub stacks: u64,
    /// Stacks that were taken since the tracker woke.
    pub walked_stacks: u64,
    /// Those of them that end before their thread's first frame.
    pub truncated_stacks: u64,
    /// Stacks that found no room in the table.
    pub lost_stacks: u64,
    /// What was kept, in our words: `profile` is one that Mozilla's format does not know.
    pub mode: Option<String>,
    /// Usable bytes of all live blocks, by the allocator's counters.
    pub heap_allocated: Option<u64>,
    /// Live blocks that the tracker was never told of, and so are not in `blockList`.
    pub untracked: Sum,
    /// What the tracker's own tables have, in bytes.
    pub tracker_bytes: Option<u64>,
    /// Of a profile: what the sample says of all blocks.
    pub sampled: Option<Sampled>,
    /// Blocks born while reporters ran, which `blockList` leaves out.
    pub born_during_blocks: u64,
    /// Their usable bytes.
    pub born_during_bytes: u64,
    /// Executables and libraries of the process.
    pub modules: Vec<Module>,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// The scopes that the program has entered, from number 1 on: the number of the scope around it (0 is none), and its name.
    pub scopes: Vec<(u16, String)>,
    /// What each report stack stands for.
    pub reports: HashMap<TraceId, ReportSite>,
    /// Reports that do not fit the heap.
    pub wrong: Vec<Wrong>,
    /// The crates whose types this build of memreport measures.
    pub features: Vec<String>,
    /// The fields that were measured in this collection.
    pub measured: Vec<FieldPlace>,
    /// The fields of the program that are not measured, with the reasons.
    pub skipped: Vec<FieldPlace>,
    /// What holds blocks that nobody reports.
    pub holders: HashMap<HolderId, Holder>,
    /// Words of statics that point into blocks that are reported.
    pub reported_statics: Vec<StaticPlace>,
    /// In a scan: the words of the program's statics that lead to blocks.
    pub statics: Vec<StaticWord>,
}

impl Extension {
    /// The names from the outermost scope to this one; none of number 0.
    #[must_use]
    pub fn scope_names(&self, scope: u16) -> Vec<&str> {
        let mut names = Vec::new();
        let mut next = usize::from(scope);
        // Each is named before those inside it.
        while let Some((around, name)) = next.checked_sub(1).and_then(|at| self.scopes.get(at)) {
            names.push(name.as_str());
            if usize::from(*around) >= next {
                break;
            }
            next = usize::from(*around);
        }
        names.reverse();
        names
    }
}

/// A number of blocks and their usable bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Sum {
    /// How many.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a profile's sample says of all blocks that were made since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Sampled {
    /// The bytes between two samples, on average; 0 if bytes are not drawn for.
    pub sample_bytes: u64,
    /// The probability of each block besides, whatever its size.
    pub sample_probability: f64,
    /// All blocks.
    pub all: Estimate,
    /// Blocks that nobody reports.
    pub unreported: Estimate,
    /// Blocks that one reporter reports.
    pub once: Estimate,
    /// Blocks that are reported twice or more.
    pub twice: Estimate,
}

/// An estimate with its spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Estimate {
    /// How many blocks.
    pub blocks: f64,
    /// Their usable bytes.
    pub bytes: f64,
    /// The standard error of the bytes.
    pub error: f64,
}

/// An executable or library of the process.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Module {
    /// Its file.
    pub path: String,
    /// Its GNU build id in hexadecimal, if it has one.
    #[serde(default)]
    pub build_id: Option<String>,
    /// Its load bias, in hexadecimal.
    #[serde(default)]
    pub base: Option<String>,
}

/// A thread of the process.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Thread {
    /// The number that blocks name it by.
    pub id: u32,
    /// The system's number.
    #[serde(default)]
    pub tid: Option<u64>,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
}

/// Who reported: a reporter's path, and the field of the type that was being measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReportSite {
    /// The path of the report, `explicit/index`.
    pub path: String,
    /// The type whose fields were being visited.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// The field.
    pub field: Option<String>,
    /// Source file of the field.
    pub file: Option<String>,
    /// Line of the field.
    pub line: Option<u32>,
    /// `here` if the field counts shared blocks whoever else does.
    pub shared: Option<String>,
}

/// In what way a report does not fit the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WrongKind {
    /// The address is in no block.
    NonHeap,
    /// The address is inside a block but not its start.
    Interior,
    /// The amount is not the block's.
    Partial,
    /// The block was freed between the report and the dump.
    FreedSince,
    /// A kind that a newer writer knows.
    #[serde(other)]
    Other,
}

/// A report that does not fit the heap.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Wrong {
    /// In what way.
    pub kind: WrongKind,
    /// The address reported, in hexadecimal.
    pub addr: String,
    /// The bytes reported.
    pub claimed: u64,
    /// Who reported it.
    pub reporter: Option<TraceId>,
    /// How many equal reports this stands for.
    pub num: u64,
    /// The block's usable bytes, where there is a block.
    pub usable: Option<u64>,
    /// The block's requested bytes, where there is a block.
    pub req: Option<u64>,
    /// Where the block was allocated.
    pub alloc: Option<TraceId>,
    /// Of a report that points into a block: who reports the block itself.
    pub block_reports: Vec<TraceId>,
    /// Of an address that is in no block: the module that has it.
    pub module: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(crate) struct WireExtension {
    pub(crate) version: u64,
    pub(crate) needs: Vec<String>,
    program: Option<String>,
    pid: Option<u32>,
    uptime_ms: Option<u64>,
    reason: Option<String>,
    unwinder: Option<String>,
    times: bool,
    stacks: u64,
    walked_stacks: u64,
    truncated_stacks: u64,
    lost_stacks: u64,
    mode: Option<String>,
    /// What went wrong when the dump was taken: becomes the dump's.
    pub(crate) notes: Vec<String>,
    heap_allocated: Option<u64>,
    untracked: Sum,
    tracker_bytes: Option<u64>,
    sampled: Option<Sampled>,
    born_during: Sum,
    modules: Vec<Module>,
    threads: Vec<Thread>,
    scopes: Vec<(u16, String)>,
    reports: HashMap<String, ReportSite>,
    wrong: Vec<WireWrong>,
    features: Vec<String>,
    measured: Vec<FieldPlace>,
    skipped: Vec<FieldPlace>,
    holders: HashMap<String, WireHolder>,
    reported_statics: Vec<StaticPlace>,
    statics: Vec<StaticWord>,
    /// What was looked up of frames, by their keys.
    pub(crate) symbols: HashMap<String, WireSymbol>,
}

/// A symbol as a self-contained dump has it.
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
}

impl From<WireSymbol> for Symbol {
    fn from(wire: WireSymbol) -> Self {
        let WireSymbol { function, name, file, line, inlined, folded } = wire;
        let (name, file) = (name.map(Into::into), file.map(Into::into));
        Self { function: function.into(), name, file, line, inlined, folded }
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
        Extension {
            wrong: self.wrong.into_iter().map(&mut wrong).collect(),
            reports,
            program: self.program,
            pid: self.pid,
            uptime_ms: self.uptime_ms,
            reason: self.reason,
            unwinder: self.unwinder,
            times: self.times,
            stacks: self.stacks,
            walked_stacks: self.walked_stacks,
            truncated_stacks: self.truncated_stacks,
            lost_stacks: self.lost_stacks,
            mode: self.mode,
            heap_allocated: self.heap_allocated,
            untracked: self.untracked,
            tracker_bytes: self.tracker_bytes,
            sampled: self.sampled,
            born_during_blocks: self.born_during.blocks,
            born_during_bytes: self.born_during.bytes,
            modules: self.modules,
            threads: self.threads,
            scopes: self.scopes,
            features: self.features,
            measured: self.measured,
            skipped: self.skipped,
            holders: held_by.collect(),
            reported_statics: self.reported_statics,
            statics: self.statics,
        }
    }
}
