//! The rows of a heap with their names, for formats outside of this crate.

use super::model::{Amounts, Heap, HeapFrame, Row};
use crate::analysis::Class;
use crate::analysis::Totals;
use crate::axis::ReportState;
use crate::read::SpanIds;

/// A group of blocks that are alike: of one stack, type, scope, thread, size, age and list of
/// reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group<'h> {
    /// The number of its stack, for [`Heap::stack_frames`].
    pub stack: u32,
    /// The type of the blocks, if the stack shows it.
    pub block_type: Option<&'h str>,
    /// The scope that they were allocated in, `request > search`.
    pub scope: Option<String>,
    /// The span of a trace that they were allocated in, if it is known and was wanted.
    pub span: Option<SpanIds>,
    /// The thread that allocated them, `worker (2)`.
    pub thread: Option<&'h str>,
    /// The number of reports that count them.
    pub state: ReportState,
    /// The paths of the reports that count them, the first report first.
    pub reporters: Vec<&'h str>,
    /// The usable bytes of one block.
    pub size: u64,
    /// The lower bound of their age in milliseconds, if it is known and was wanted.
    pub age_ms: Option<u64>,
    /// True if they are the blocks from before tracking began, of which only the sum is known.
    pub is_untracked: bool,
    /// The live blocks; `None` if the dump has only allocated ones.
    pub live: Option<Totals>,
    /// All blocks that were allocated; `None` if the dump has only live ones.
    pub allocated: Option<Totals>,
}

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GroupFrame<'h> {
    /// The function, or the text of a frame that was not looked up.
    pub function: &'h str,
    /// The source file.
    pub file: Option<&'h str>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// True if it was inlined into the next frame.
    pub is_inlined: bool,
    /// The module of a frame that was not looked up.
    pub module: Option<&'h str>,
    /// The build id of that module.
    pub build_id: Option<&'h str>,
    /// The address in the file of that module.
    pub offset: Option<u64>,
}

impl Heap {
    /// Returns the groups of blocks, largest first.
    ///
    /// # Examples
    ///
    /// ```
    /// use memreport_analysis::heap::{Heap, HeapOptions};
    ///
    /// let dump = memreport_analysis::read::read_slice(
    ///     br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
    ///          "blockList": [{"req": 100, "slop": 12, "alloc": "A"}],
    ///          "traceTable": {"A": ["B"]}, "frameTable": {"B": "#00: shop::load (load.rs:7)"}}"##,
    /// )?;
    /// let heap = Heap::new(&dump, &HeapOptions::default())?;
    /// let group = heap.groups().next().unwrap();
    /// assert_eq!(group.live.unwrap().usable(), 112);
    /// assert_eq!(heap.site(group.stack).unwrap().function, "shop::load");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.rows.iter().map(|row| self.group(row))
    }

    fn group(&self, row: &Row) -> Group<'_> {
        let kind = &row.kind;
        let has_live = self.amounts != Amounts::Allocated;
        Group {
            stack: kind.stack,
            block_type: kind.block_type.map(|id| self.text(id)),
            scope: self.scope(kind.scope),
            span: kind.span,
            thread: kind.thread.map(|id| self.text(id)),
            state: kind.class.into(),
            reporters: kind.reports.iter().map(|report| self.text(report.path)).collect(),
            size: kind.size,
            age_ms: kind.age_ms,
            is_untracked: kind.class == Class::Untracked,
            live: has_live.then_some(row.live),
            allocated: (self.amounts != Amounts::Live).then_some(row.allocated),
        }
    }

    /// Returns the frames of a stack, innermost first.
    ///
    /// # Panics
    ///
    /// If the heap has no such stack.
    pub fn stack_frames(&self, stack: u32) -> impl Iterator<Item = GroupFrame<'_>> {
        self.stack(stack).map(|frame| self.group_frame(frame))
    }

    /// Returns the innermost frame of the program's own code in a stack, if it has one.
    ///
    /// # Panics
    ///
    /// If the heap has no such stack.
    #[must_use]
    pub fn site(&self, stack: u32) -> Option<GroupFrame<'_>> {
        self.sites[stack as usize].map(|frame| self.group_frame(&self.frames[frame as usize]))
    }

    fn group_frame<'h>(&'h self, frame: &'h HeapFrame) -> GroupFrame<'h> {
        let address = frame.address.as_ref();
        let module = address.map(|address| &*address.module);
        GroupFrame {
            function: &frame.function,
            file: frame.file.as_deref(),
            line: frame.line,
            is_inlined: frame.inlined,
            module,
            build_id: module.map(|path| self.build_id(path)).filter(|id| !id.is_empty()),
            offset: address.map(|address| address.offset),
        }
    }

    /// Returns the average bytes between two samples, if the amounts are estimates from a sample; 0
    /// if single blocks are sampled.
    #[must_use]
    pub fn sample_bytes(&self) -> Option<u64> {
        self.sample_bytes
    }

    /// Returns the path of the program, or a text in parentheses if it is unknown.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.process.program
    }

    /// Returns the process id; 0 if it is unknown.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Returns the milliseconds since the tracker began.
    #[must_use]
    pub fn uptime_ms(&self) -> u64 {
        self.process.uptime_ms
    }

    /// Returns the tracker's mode, in the words of `$DMD`.
    #[must_use]
    pub fn mode(&self) -> &str {
        &self.process.mode
    }
}
