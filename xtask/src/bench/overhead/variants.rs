//! What is timed: the work, the programs that do it, and what each may cost.

/// A kind of work.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether wall time counts, and not the processor's.
    pub(crate) is_wall: bool,
    /// Which of a variant's targets holds.
    pub(crate) target: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Replacing blocks at random, on so many threads.
    Churn(usize),
    /// Parsing a big text.
    Json,
    /// The example program, from start to end.
    Fulltext,
    /// Parsing small texts, filling maps.
    Maps,
}

pub(crate) const WORKS: [Work; 5] = [
    Work { name: "churn, 1 thread", kind: Kind::Churn(1), is_wall: false, target: 0 },
    Work { name: "churn, 2 threads", kind: Kind::Churn(2), is_wall: true, target: 1 },
    Work { name: "json", kind: Kind::Json, is_wall: false, target: 2 },
    Work { name: "fulltext", kind: Kind::Fulltext, is_wall: false, target: 2 },
    Work { name: "maps", kind: Kind::Maps, is_wall: false, target: 2 },
];

/// A way to do the work.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// A variable of the environment, and its value.
    pub(crate) variable: Option<(&'static str, &'static str)>,
    /// The ratio to the system's allocator that it may cost: churn on 1 thread and on 2, the rest.
    pub(crate) targets: Option<[f64; 3]>,
    pub(crate) size: Size,
}

/// How much of the work, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// All of it, and in many rounds: the ratio is so small that few would not show it.
    Fine,
    All,
    /// A tenth: it takes tens of times as long as the system's allocator, which does a tenth beside it.
    Tenth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    System,
    /// With DMD, built as cargo builds by default.
    Dmd,
    /// With DMD, built with frame pointers.
    FramePointers,
    /// With DMD over jemalloc.
    DmdJemalloc,
    Dhat,
    Jemalloc,
    Servo,
    /// The system's allocator, and heaptrack preloaded.
    Heaptrack,
}

pub(crate) const SYSTEM: Variant = Variant {
    name: "system",
    program: Program::System,
    variable: None,
    targets: None,
    size: Size::Fine,
};

/// Every block, full stacks, in the two builds: what is compared with the peers.
pub(crate) const FULL: [&str; 2] = ["full stacks, frame pointers", "full stacks, default build"];
pub(crate) const HEAPTRACK: &str = "heaptrack, recording (wall) *";
pub(crate) const DHAT_ALL: &str = "dhat, all frames *";
pub(crate) const SERVO: &str = "servo-allocator *";
pub(crate) const JEMALLOC: &str = "jemalloc";
pub(crate) const JEMALLOC_SAMPLED: &str = "jemalloc, profile at 512 KiB";

pub(crate) const VARIANTS: [Variant; 14] = [
    ours("asleep", None, Some([1.05, 1.05, 1.05]), Size::Fine),
    ours(
        "profile at 512 KiB",
        Some("--mode=profile --sample-bytes=524288"),
        Some([1.08, 1.10, 1.06]),
        Size::Fine,
    ),
    ours("profile at 64 KiB", Some("--mode=profile --sample-bytes=65536"), None, Size::Fine),
    ours("no stacks", Some("--stacks=none"), Some([1.12, 1.15, 1.25]), Size::All),
    ours("partial stacks", Some("--stacks=partial"), Some([1.25, 1.3, 1.3]), Size::All),
    Variant {
        program: Program::FramePointers,
        ..ours(FULL[0], Some("--stacks=full"), Some([1.5, 1.8, 1.5]), Size::All)
    },
    ours(FULL[1], Some("--stacks=full"), Some([1.7, 2.3, 1.8]), Size::All),
    peer(JEMALLOC, Program::Jemalloc, None, Size::All),
    peer(
        JEMALLOC_SAMPLED,
        Program::Jemalloc,
        Some(("_RJEM_MALLOC_CONF", "prof:true,prof_active:true,lg_prof_sample:19")),
        Size::All,
    ),
    peer(
        "jemalloc, every allocation *",
        Program::Jemalloc,
        Some(("_RJEM_MALLOC_CONF", "prof:true,prof_active:true,lg_prof_sample:0")),
        Size::Tenth,
    ),
    peer(HEAPTRACK, Program::Heaptrack, None, Size::Tenth),
    peer("dhat, 10 frames *", Program::Dhat, None, Size::Tenth),
    peer(DHAT_ALL, Program::Dhat, Some(("DHAT_FRAMES", "all")), Size::Tenth),
    peer(SERVO, Program::Servo, None, Size::Tenth),
];

const fn ours(
    name: &'static str,
    wish: Option<&'static str>,
    targets: Option<[f64; 3]>,
    size: Size,
) -> Variant {
    let variable = match wish {
        Some(wish) => Some(("DMD", wish)),
        None => None,
    };
    Variant { name, program: Program::Dmd, variable, targets, size }
}

const fn peer(
    name: &'static str,
    program: Program,
    variable: Option<(&'static str, &'static str)>,
    size: Size,
) -> Variant {
    Variant { name, program, variable, targets: None, size }
}
