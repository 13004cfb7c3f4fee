//! The columns of each table.

use super::{Column, Kind, Table};

/// Makes a column.
const fn column(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, meaning, attribute: None }
}

/// Makes a column of an attribute of OpenTelemetry's resources.
const fn attribute(name: &'static str, attribute: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Text, meaning, attribute: Some(attribute) }
}

const fn int(name: &'static str, meaning: &'static str) -> Column {
    column(name, Kind::Int, meaning)
}

const fn text(name: &'static str, meaning: &'static str) -> Column {
    column(name, Kind::Text, meaning)
}

/// The columns that rows of a snapshot begin with.
pub(super) const KEY: &[Column] = &[
    text(
        "snapshot_id",
        "the snapshot: 32 hexadecimal digits, the same each time the same file is exported",
    ),
    int("time_unix_ms", "milliseconds since 1970 began, of the snapshot"),
    attribute("service_name", "service.name", "as `service=` of the path"),
    attribute("service_version", "service.version", "as `version=` of the path"),
    attribute("host_name", "host.name", "as `host=` of the path"),
];

/// One row for each file or moment.
pub const SNAPSHOTS: Table = Table {
    name: "snapshots",
    row: "A row for each report, dump or recording. Its file is shipped last: a snapshot that is \
          here has all its rows in the other tables.",
    has_key: true,
    columns: &[
        int("schema_version", "1; the number of the layout"),
        text("source", "`report`, `dump` or `recording`"),
        attribute("service_namespace", "service.namespace", "null if it is unknown"),
        attribute("service_instance_id", "service.instance.id", "null if it is unknown"),
        attribute(
            "deployment_environment_name",
            "deployment.environment.name",
            "null if it is unknown",
        ),
        attribute("k8s_namespace_name", "k8s.namespace.name", "null if it is unknown"),
        attribute("k8s_pod_name", "k8s.pod.name", "null if it is unknown"),
        attribute("k8s_container_name", "k8s.container.name", "null if it is unknown"),
        attribute("process_executable_name", "process.executable.name", "the program's name"),
        Column {
            name: "process_pid",
            kind: Kind::Int,
            meaning: "the process, within its own namespace",
            attribute: Some("process.pid"),
        },
        int("process_start_unix_ms", "milliseconds since 1970 began, of the start of the process"),
        text(
            "allocator",
            "`glibc`, `jemalloc`, `mimalloc` or another name; null if it has no statistics",
        ),
        column("is_estimate", Kind::Bool, "true if block groups are estimates from a sample"),
        column(
            "is_incomplete",
            Kind::Bool,
            "true if reporters were missed, or events of a recording",
        ),
        int("resident_bytes", "bytes in physical memory"),
        int("resident_peak_bytes", "the most bytes in physical memory so far"),
        int("virtual_bytes", "bytes of address space"),
        int("heap_allocated_bytes", "usable bytes in live blocks, by the allocator's counters"),
        int("heap_allocated_blocks", "live blocks, by the allocator's counters"),
        int("heap_committed_bytes", "bytes that the allocator took from the system"),
        int(
            "heap_overhead_bytes",
            "of these, bytes in no block: fragmentation, caches, bookkeeping",
        ),
        int("heap_unclassified_bytes", "bytes in live blocks that no report names"),
        int("explicit_bytes", "bytes of the tree `explicit`, with `heap-unclassified`"),
        int("thread_count", "threads"),
        int("listed_blocks", "blocks in the rows of `blocks`, without the untracked ones"),
        int("listed_bytes", "usable bytes of these blocks"),
        int("untracked_blocks", "blocks from before tracking began or while it was off"),
        int("untracked_bytes", "usable bytes of these blocks"),
        int("tracker_bytes", "bytes of the tracker's own tables, in no other figure of the heap"),
        int("cost_us", "microseconds that the agent waited for the answer"),
    ],
};

/// One row for each report.
pub const REPORTS: Table = Table {
    name: "reports",
    row: "A row for each line of a memory report.",
    has_key: true,
    columns: &[
        text("process", "the process that was measured; empty for the writer of the report"),
        text("path", "the path, `explicit/index/terms`"),
        text("kind", "`heap`, `nonheap` or `other`; only the first two are parts of a sum"),
        text(
            "unit",
            "of the amount: `bytes`, `count`, `cumulative` (a count that never decreases) or `percent` (hundredths of a percent)",
        ),
        int("amount", "the amount, in this unit"),
    ],
};

/// One row for each group of alike blocks.
pub const BLOCKS: Table = Table {
    name: "blocks",
    row: "A row for each group of alike blocks of a dump, or of a recording at its end: of one \
          stack, type, scope, thread, size, age and list of reports.",
    has_key: true,
    columns: &[
        int("stack_id", "the stack that allocated them, in `stacks`; null for untracked blocks"),
        text(
            "site",
            "the innermost frame of the program's own code, `shop::Cart::add (src/cart.rs:7)`; null without symbols",
        ),
        text("type", "the type, if the stack shows it"),
        text("scope", "the scope that they were allocated in, `request > search`; null for none"),
        text("thread", "the thread that allocated them"),
        text(
            "state",
            "the number of reports: `unreported`, `once` or `twice`; `other` if the dump has no reports",
        ),
        column(
            "reporters",
            Kind::Texts,
            "the paths of the reports that count them, the first report first",
        ),
        int("size_bytes", "usable bytes of one block"),
        int(
            "age_ms",
            "the lower bound of the age in milliseconds, a power of two: the age is less than twice it; null if it is unknown",
        ),
        int("blocks", "live blocks"),
        int("requested_bytes", "bytes that the program requested, in live blocks"),
        int(
            "slop_bytes",
            "bytes that the allocator added to these; together they are the usable bytes",
        ),
        int("allocated_blocks", "all blocks, live or freed; null if only live ones are known"),
        int("allocated_bytes", "usable bytes of these; null if only live ones are known"),
        column(
            "is_untracked",
            Kind::Bool,
            "true for the sum of the blocks from before tracking began",
        ),
    ],
};

/// One row for each stack.
pub const STACKS: Table = Table {
    name: "stacks",
    row: "A row for each different stack of a file. Frames are listed innermost first; the lists \
          are as long as each other.",
    has_key: true,
    columns: &[
        int("stack_id", "a hash of the frames: a stack has the same number in all files"),
        column(
            "functions",
            Kind::Texts,
            "the functions; of a frame without symbol the address as a text",
        ),
        column("files", Kind::Texts, "the source files; null if unknown"),
        column("lines", Kind::Ints, "the lines in them, from 1; null if unknown"),
        column(
            "modules",
            Kind::Texts,
            "the executables or libraries of frames without symbols, else null",
        ),
        column("build_ids", Kind::Texts, "their build ids in hexadecimal, else null"),
        column("offsets", Kind::Ints, "return addresses in their files, else null"),
    ],
};

/// One row for each type of a scan.
pub const RETENTION: Table = Table {
    name: "retention",
    row: "A row for each type of a scan dump: what its blocks keep alive. Groups overlap.",
    has_key: true,
    columns: &[
        text("axis", "the property of the groups: `type`"),
        text("name", "the type"),
        int("blocks", "blocks of the type"),
        int("own_bytes", "usable bytes of these blocks"),
        int("retained_bytes", "bytes that would be freed with them"),
    ],
};

/// One row for each point of a recording.
pub const TIMELINE: Table = Table {
    name: "timeline",
    row: "A row for each exact sum of a recording.",
    has_key: true,
    columns: &[
        int("at_us", "microseconds since the recording began"),
        int("allocated_bytes", "bytes allocated since the program's start"),
        int("allocations", "blocks allocated since then"),
        int("freed_bytes", "bytes freed since then"),
        int("frees", "blocks freed since then"),
        int("resident_bytes", "bytes in physical memory"),
    ],
};

/// One row for each stack that was symbolicated centrally.
pub const SYMBOLS: Table = Table {
    name: "symbols",
    row: "A row for each stack of a build whose symbols were looked up centrally: once, also if \
          millions of snapshots have it. Its path has `build=` alone.",
    has_key: false,
    columns: &[
        int("stack_id", "the stack, in `stacks` and `blocks`"),
        text("site", "the innermost frame of the program's own code"),
        text("type", "the type of its blocks, if the frames show it"),
        column("functions", Kind::Texts, "the functions, innermost first, with inlined ones"),
        column("files", Kind::Texts, "their source files; null if unknown"),
        column("lines", Kind::Ints, "the lines in them, from 1; null if unknown"),
    ],
};
