//! The extension of a dump: what our tracker adds to Mozilla's format, under the key `memreport`.

use std::collections::HashMap;

use serde::Deserialize;

use super::block::{HolderId, TraceId};
use super::holder::{FieldPlace, Holder, StaticPlace, StaticWord};
use super::model::MOST_FRAMES;
use super::stack_frame::StackFrame;

/// The fields that our tracker adds to a dump.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Extension {
    /// The path of the executable.
    pub program: Option<String>,
    /// The process id.
    pub pid: Option<u32>,
    /// The milliseconds since the tracker started.
    pub uptime_ms: Option<u64>,
    /// The reason for the dump, as a phrase.
    pub reason: Option<String>,
    /// The unwinder, as a phrase.
    pub unwinder: Option<String>,
    /// True if blocks get a timestamp when they are allocated, and so have an age.
    pub times: bool,
    /// The number of stacks in the table.
    pub stacks: u64,
    /// The number of stack walks since the tracker started.
    pub walked_stacks: u64,
    /// The number of those that end before their thread's first frame.
    pub truncated_stacks: u64,
    /// The number of stacks that did not fit into the table.
    pub lost_stacks: u64,
    /// The tracker's own name of the mode. Mozilla's format has no `profile`.
    pub mode: Option<String>,
    /// The usable bytes of all live blocks, by the allocator's counters.
    pub heap_allocated: Option<u64>,
    /// True if the dump has every word of the process outside the heap that leads into a block: of
    /// statics, stacks, registers and other memory. What nothing refers to is leaked.
    pub has_all_roots: bool,
    /// The live blocks from before tracking began or while it was off, which `blockList` therefore
    /// lacks. Of a profile, an estimate.
    pub untracked: Sum,
    /// The bytes of untracked blocks that are reported.
    pub reported_untracked: u64,
    /// The bytes that were reported as heap without being measured block by block.
    pub unmeasured: i64,
    /// The size of the tracker's own tables, in bytes.
    pub tracker_bytes: Option<u64>,
    /// Of a profile: the estimates for all blocks.
    pub sampled: Option<Sampled>,
    /// The blocks that were allocated while reporters ran, which `blockList` leaves out.
    pub allocated_during: Sum,
    /// The executables and libraries of the process.
    pub modules: Vec<Module>,
    /// The threads of the process.
    pub threads: Vec<Thread>,
    /// The scopes that the program has entered, from number 1.
    pub scopes: Vec<Scope>,
    /// The scopes that are linked to spans of traces.
    pub spans: HashMap<u16, SpanIds>,
    /// The report that each report stack stands for.
    pub reports: HashMap<TraceId, ReportSite>,
    /// The reports that do not fit the heap.
    pub wrong: Vec<Wrong>,
    /// The crates whose types this build of memreport measures.
    pub features: Vec<String>,
    /// The fields that were measured in this collection.
    pub measured: Vec<FieldPlace>,
    /// The fields of the program that no collection measures, with the reasons.
    pub skipped: Vec<FieldPlace>,
    /// The holders of unreported blocks.
    pub holders: HashMap<HolderId, Holder>,
    /// The words of statics that point into reported blocks.
    pub reported_statics: Vec<StaticPlace>,
    /// In a scan: the words of the program's statics that point at blocks.
    pub statics: Vec<StaticWord>,
    /// In a scan: the frames of all threads, those of a thread from the innermost on.
    pub frames: Vec<StackFrame>,
}

impl Extension {
    /// Returns the names from the outermost scope to this one; none for number 0. If there
    /// are more than a thousand, the outermost are left out.
    #[must_use]
    pub fn scope_names(&self, scope: u16) -> Vec<&str> {
        let mut names = Vec::new();
        let mut next = usize::from(scope);
        // A scope has a higher number than the one around it, so the walk ends.
        while names.len() < MOST_FRAMES
            && let Some(scope) = next.checked_sub(1).and_then(|at| self.scopes.get(at))
        {
            names.push(scope.name.as_str());
            if usize::from(scope.outer) >= next {
                break;
            }
            next = usize::from(scope.outer);
        }
        names.reverse();
        names
    }

    /// Returns the span that this scope is in, if it is linked, or the innermost around it that is.
    #[must_use]
    pub fn span_ids(&self, mut scope: u16) -> Option<SpanIds> {
        loop {
            if let Some(ids) = self.spans.get(&scope) {
                return Some(*ids);
            }
            let outer = self.scopes.get(usize::from(scope).checked_sub(1)?)?.outer;
            // A scope has a higher number than the one around it.
            scope = Some(outer).filter(|outer| *outer < scope)?;
        }
    }
}

/// The identifiers of a span in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanIds {
    /// The identifier of the trace.
    pub trace: [u8; 16],
    /// The identifier of the span.
    pub span: [u8; 8],
}

impl SpanIds {
    /// Returns the identifier of the trace as 32 hexadecimal digits.
    #[must_use]
    pub fn trace_text(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.trace))
    }

    /// Returns the identifier of the span as 16 hexadecimal digits.
    #[must_use]
    pub fn span_text(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.span))
    }
}

/// A scope of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The number of the scope around it; 0 if there is none.
    pub outer: u16,
    /// Its name.
    pub name: String,
}

/// A number of blocks and their usable bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Sum {
    /// The number of blocks.
    pub blocks: u64,
    /// Their usable bytes.
    pub bytes: u64,
}

/// The estimates of a profile for all blocks that were allocated since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Sampled {
    /// The bytes between two samples, on average; 0 if bytes are not sampled.
    pub sample_bytes: u64,
    /// The additional probability of each block, whatever its size.
    pub sample_probability: f64,
    /// All blocks.
    pub all: Estimate,
    /// Blocks that no reporter reports.
    pub unreported: Estimate,
    /// Blocks that are reported once.
    pub once: Estimate,
    /// Blocks that are reported twice or more often.
    pub twice: Estimate,
}

/// An estimate with its standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Estimate {
    /// The number of blocks.
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
    /// The number by which blocks refer to it.
    pub id: u32,
    /// The number of the operating system.
    #[serde(default)]
    pub tid: Option<u64>,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// Its thread pointer, the base of the thread-local variables, in hexadecimal.
    #[serde(default)]
    pub pointer: Option<String>,
}

/// The origin of a report: the path, and the field that was being measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReportSite {
    /// The path of the report, `explicit/index`.
    pub path: String,
    /// The type whose fields were being measured.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// The field.
    pub field: Option<String>,
    /// The source file of the field.
    pub file: Option<String>,
    /// The line of the field.
    pub line: Option<u32>,
    /// `here` if the field counts shared blocks even if other fields do as well.
    pub shared: Option<String>,
}

/// The kind of a report that does not fit the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WrongKind {
    /// The address is in no block.
    NonHeap,
    /// The address is inside a block but not its start.
    Interior,
    /// The claimed bytes differ from the block's.
    Partial,
    /// The block was freed between the report and the dump.
    FreedSince,
    /// A kind of a newer writer.
    #[serde(other)]
    Other,
}

/// A report that does not fit the heap.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Wrong {
    /// The kind of error.
    pub kind: WrongKind,
    /// The claimed address, in hexadecimal.
    pub addr: String,
    /// The claimed bytes.
    pub claimed: u64,
    /// The stack of the report.
    pub reporter: Option<TraceId>,
    /// The number of equal reports.
    pub num: u64,
    /// The usable bytes of the block, if there is one.
    pub usable: Option<u64>,
    /// The requested bytes of the block, if there is one.
    pub req: Option<u64>,
    /// The stack that allocated the block.
    pub alloc: Option<TraceId>,
    /// Of a report that points into a block: the reports of the block itself.
    pub block_reports: Vec<TraceId>,
    /// Of an address that is in no block: the module that contains it.
    pub module: Option<String>,
}
