//! The kinds of work, the programs that do it, and the target of each.

/// A kind of work.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// True if wall time counts instead of processor time.
    pub(crate) is_wall: bool,
    /// The index of the target in [`Variant::targets`].
    pub(crate) target: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Replaces blocks at random, on this many threads.
    Churn(usize),
    /// Replaces blocks on two threads, each with as many blocks as one of 64, and both together
    /// with as many stacks as these.
    ChurnLike64,
    /// Parses a big text.
    Json,
    /// Runs the example program from start to end.
    Fulltext,
    /// Parses small texts and fills maps.
    Maps,
}

/// The control for 64 threads.
pub(crate) const LIKE_64: &str = "churn, 2 threads like 64";

pub(crate) const WORKS: [Work; 8] = [
    Work { name: "churn, 1 thread", kind: Kind::Churn(1), is_wall: false, target: 0 },
    Work { name: "churn, 2 threads", kind: Kind::Churn(2), is_wall: true, target: 1 },
    Work { name: "churn, 8 threads", kind: Kind::Churn(8), is_wall: true, target: 1 },
    Work { name: LIKE_64, kind: Kind::ChurnLike64, is_wall: true, target: 1 },
    Work { name: "churn, 64 threads", kind: Kind::Churn(64), is_wall: true, target: 1 },
    Work { name: "json", kind: Kind::Json, is_wall: false, target: 2 },
    Work { name: "fulltext", kind: Kind::Fulltext, is_wall: false, target: 2 },
    Work { name: "maps", kind: Kind::Maps, is_wall: false, target: 2 },
];

impl Kind {
    /// Returns whether more threads work than the machine may have processors. Only our own modes
    /// over the system's allocator do so.
    pub(crate) fn is_crowded(self) -> bool {
        matches!(self, Kind::Churn(threads) if threads > 2)
    }

    /// Returns whether peers and other allocators do this work, too.
    pub(crate) fn has_peers(self) -> bool {
        !self.is_crowded() && self != Kind::ChurnLike64
    }
}

/// A program and an environment for the work.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// The name and the value of an environment variable.
    pub(crate) variable: Option<(&'static str, &'static str)>,
    /// The largest ratios to its base: churn on one thread, churn on two, the rest.
    pub(crate) targets: Option<[f64; 3]>,
    pub(crate) size: Size,
}

impl Variant {
    /// Returns whether it does this work.
    pub(crate) fn does(&self, kind: Kind) -> bool {
        if matches!(self.program, Program::Idle(_) | Program::IdleJemalloc(_)) {
            return matches!(kind, Kind::Churn(1 | 2));
        }
        let is_own = matches!(self.program, Program::Dmd | Program::FramePointers);
        kind.has_peers() || is_own && self.targets.is_some()
    }

    /// Returns the program that it is compared with: the same allocator alone.
    pub(crate) fn base(&self) -> Program {
        match self.program {
            Program::DmdJemalloc | Program::IdleJemalloc(_) => Program::Jemalloc,
            Program::DmdMimalloc => Program::Mimalloc,
            Program::DmdSnmalloc => Program::Snmalloc,
            Program::JemallocProfiler => Program::JemallocWithProfiler,
            _ => Program::System,
        }
    }
}

/// The largest ratio of the cost on more threads to that on two.
pub(crate) const MOST_TO_TWO_THREADS: f64 = 1.05;

/// The fraction of the work, and the number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// All of the work in many rounds, for ratios close to 1.
    Fine,
    All,
    /// A tenth of the work, for variants tens of times slower than the system's allocator.
    Tenth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    System,
    Jemalloc,
    Mimalloc,
    Snmalloc,
    /// The system's allocator, and about so many further instructions for each replaced block,
    /// which only compute.
    Idle(u32),
    /// The same over jemalloc.
    IdleJemalloc(u32),
    /// With DMD, in cargo's default build.
    Dmd,
    /// With DMD, built with frame pointers.
    FramePointers,
    /// With DMD on jemalloc, in cargo's default build.
    DmdJemalloc,
    /// With DMD on mimalloc, in cargo's default build.
    DmdMimalloc,
    /// With DMD on snmalloc, in cargo's default build.
    DmdSnmalloc,
    Dhat,
    /// jemalloc's profiler, at work.
    JemallocProfiler,
    /// jemalloc built with its profiler, which does not work.
    JemallocWithProfiler,
    Servo,
    Heapscope,
    /// The system's allocator with heaptrack preloaded.
    Heaptrack,
}

impl Program {
    /// Returns the first words of the command line that replaces blocks.
    pub(crate) fn churn(self) -> Vec<String> {
        match self {
            Program::Idle(instructions) | Program::IdleJemalloc(instructions) => {
                vec!["idle".to_owned(), instructions.to_string()]
            }
            _ => vec!["churn".to_owned()],
        }
    }
}

/// Every block with full stacks, in the two builds: these are compared with the peers.
pub(crate) const FULL: [&str; 2] = ["full stacks, frame pointers", "full stacks, default build"];
/// Controls: as many further instructions as full stacks add, which only compute.
pub(crate) const IDLE: [&str; 3] =
    ["900 idle instructions", "1,250 idle instructions", "jemalloc: 1,250 idle instructions"];
pub(crate) const JEMALLOC_FULL: &str = "jemalloc: full stacks";
pub(crate) const HEAPTRACK: &str = "heaptrack, recording (wall) *";
pub(crate) const DHAT_ALL: &str = "dhat, all frames *";
pub(crate) const HEAPSCOPE: &str = "heapscope, frame pointers *";
pub(crate) const SERVO: &str = "servo-allocator *";
pub(crate) const DHAT_10: &str = "dhat, 10 frames *";
/// DMD's profile over jemalloc, and jemalloc's own.
pub(crate) const JEMALLOC_PROFILES: [&str; 2] =
    ["jemalloc: profile at 512 KiB", "jemalloc's profiler at 512 KiB"];

const PROFILE: Option<&str> = Some("--mode=profile --sample-bytes=524288");
const NO_STACKS: Option<&str> = Some("--stacks=none");
const FULL_STACKS: Option<&str> = Some("--stacks=full");

pub(crate) const VARIANTS: [Variant; 32] = [
    ours("asleep", None, Some([1.03, 1.05, 1.05]), Size::Fine),
    ours("profile at 512 KiB", PROFILE, Some([1.08, 1.10, 1.06]), Size::Fine),
    ours("profile at 64 KiB", Some("--mode=profile --sample-bytes=65536"), None, Size::Fine),
    ours("no stacks", NO_STACKS, Some([1.12, 1.15, 1.25]), Size::Fine),
    ours("partial stacks", Some("--stacks=partial"), Some([1.25, 1.3, 1.3]), Size::All),
    Variant {
        program: Program::FramePointers,
        ..ours(FULL[0], FULL_STACKS, Some([1.3, 1.8, 1.2]), Size::Fine)
    },
    ours(FULL[1], FULL_STACKS, Some([1.45, 2.3, 1.5]), Size::Fine),
    peer(IDLE[0], Program::Idle(900), None, Size::Fine),
    peer(IDLE[1], Program::Idle(1250), None, Size::Fine),
    on(Program::DmdJemalloc, "jemalloc: asleep", None, Some(1.05)),
    on(Program::DmdJemalloc, JEMALLOC_PROFILES[0], PROFILE, Some(1.14)),
    on(Program::DmdJemalloc, "jemalloc: no stacks", NO_STACKS, Some(1.4)),
    on(Program::DmdJemalloc, JEMALLOC_FULL, FULL_STACKS, Some(2.2)),
    peer(IDLE[2], Program::IdleJemalloc(1250), None, Size::Fine),
    peer(
        JEMALLOC_PROFILES[1],
        Program::JemallocProfiler,
        Some(("_RJEM_MALLOC_CONF", "prof:true,prof_active:true,lg_prof_sample:19")),
        Size::Fine,
    ),
    peer(
        "jemalloc's profiler, all *",
        Program::JemallocProfiler,
        Some(("_RJEM_MALLOC_CONF", "prof:true,prof_active:true,lg_prof_sample:0")),
        Size::Tenth,
    ),
    on(Program::DmdMimalloc, "mimalloc: asleep", None, Some(1.05)),
    on(Program::DmdMimalloc, "mimalloc: profile at 512 KiB", PROFILE, Some(1.14)),
    on(Program::DmdMimalloc, "mimalloc: no stacks", NO_STACKS, Some(1.4)),
    on(Program::DmdMimalloc, "mimalloc: full stacks", FULL_STACKS, Some(2.2)),
    on(Program::DmdSnmalloc, "snmalloc: asleep", None, Some(1.05)),
    on(Program::DmdSnmalloc, "snmalloc: profile at 512 KiB", PROFILE, Some(1.14)),
    on(Program::DmdSnmalloc, "snmalloc: no stacks", NO_STACKS, Some(1.4)),
    on(Program::DmdSnmalloc, "snmalloc: full stacks", FULL_STACKS, Some(2.2)),
    peer("jemalloc alone", Program::Jemalloc, None, Size::All),
    peer("mimalloc alone", Program::Mimalloc, None, Size::All),
    peer("snmalloc alone", Program::Snmalloc, None, Size::All),
    peer(HEAPTRACK, Program::Heaptrack, None, Size::Tenth),
    peer(DHAT_10, Program::Dhat, None, Size::Tenth),
    peer(DHAT_ALL, Program::Dhat, Some(("DHAT_FRAMES", "all")), Size::Tenth),
    peer(SERVO, Program::Servo, None, Size::Tenth),
    peer(HEAPSCOPE, Program::Heapscope, None, Size::Tenth),
];

const fn ours(
    name: &'static str,
    options: Option<&'static str>,
    targets: Option<[f64; 3]>,
    size: Size,
) -> Variant {
    let variable = match options {
        Some(options) => Some(("DMD", options)),
        None => None,
    };
    Variant { name, program: Program::Dmd, variable, targets, size }
}

/// Returns DMD on another inner allocator, with the target for churn.
const fn on(
    program: Program,
    name: &'static str,
    options: Option<&'static str>,
    target: Option<f64>,
) -> Variant {
    let targets = match target {
        Some(target) => Some([target; 3]),
        None => None,
    };
    Variant { program, ..ours(name, options, targets, Size::Fine) }
}

const fn peer(
    name: &'static str,
    program: Program,
    variable: Option<(&'static str, &'static str)>,
    size: Size,
) -> Variant {
    Variant { name, program, variable, targets: None, size }
}
