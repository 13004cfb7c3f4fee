//! The blocks that a test leaves behind: unreported ones that are still reachable, and leaked ones.

use super::reachable_blocks;
use crate::analysis::{
    ClampError, Class, ExplainOptions, Parts, Place, Totals, explain, without_library,
};
use crate::read::{Block, ContentsTable, Dump, TraceId};

/// The blocks that a test has left behind, by the place that allocated them, largest first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Left {
    /// Blocks that a static, a reporter or a skipped field reaches, and that no reporter covers.
    pub unreported: Vec<Place>,
    /// Blocks that nothing reaches but perhaps a thread that still runs.
    pub leaked: Vec<Place>,
}

impl Left {
    /// Returns the sum of some places.
    #[must_use]
    pub fn sum(places: &[Place]) -> Totals {
        places.iter().fold(Totals::default(), |sum, place| sum.plus(&place.totals))
    }
}

/// Finds the unreported blocks in the scan of a test's process after the test: those that code of
/// the program allocated. What the test harness allocates has no frame of the program but the
/// generated `main`.
///
/// # Errors
///
/// If the dump is not a scan, or if it is damaged.
pub fn left(dump: &mut Dump, options: &ExplainOptions) -> Result<Left, ClampError> {
    let reachable = reachable_blocks(dump)?;
    let by_stack: Vec<bool> =
        (0..dump.trace_count()).map(|index| is_of_program(dump, index)).collect();
    let is_left = |block: &Block<'_>| {
        let is_of_program = block.kind.alloc.is_some_and(|alloc| by_stack[alloc.index()]);
        is_of_program && block.kind.reports.is_none() && !block.kind.freed
    };
    let blocks = std::mem::take(&mut dump.blocks);
    // They have the indices of blocks that are taken out below.
    dump.contents = ContentsTable::default();
    let held = blocks.filtered(|at, block| is_left(block) && reachable[at]);
    let leaked = blocks.filtered(|at, block| is_left(block) && !reachable[at]);
    let mut places = |blocks| {
        dump.blocks = blocks;
        let explained = explain(dump, options);
        let mut by_class = explained.places.into_iter();
        let unreported = by_class.find(|of| matches!(of.class, Class::Unreported | Class::Live));
        unreported.map(|of| of.places).unwrap_or_default()
    };
    Ok(Left { unreported: places(held), leaked: places(leaked) })
}

/// Functions that allocate for themselves: the message and the backtrace of a panic, and the
/// thread-locals of a new thread.
const OTHERS: [&str; 5] = [
    "rust_begin_unwind",
    "begin_panic_handler",
    "panic_with_hook",
    "pthread_create",
    "allocate_dtv",
];

/// Returns whether Rust code of the program is on a stack, other than the `main` of a test harness.
fn is_of_program(dump: &Dump, stack: usize) -> bool {
    let stack = dump.trace(TraceId(u32::try_from(stack).unwrap_or(u32::MAX)));
    let is_of_others = |parts: Parts<'_>| OTHERS.iter().any(|name| parts.function.contains(name));
    if stack.iter().any(|frame| is_of_others(Parts::of(&dump.frames[frame.index()]))) {
        return false;
    }
    let frames = without_library(dump, stack);
    frames.iter().any(|parts| parts.is_own() && parts.function.contains("::") && !is_main(parts))
}

/// Returns whether a frame is the function `main` at the root of a crate.
fn is_main(parts: &Parts<'_>) -> bool {
    let mut path = parts.function.rsplit("::");
    path.next() == Some("main") && path.count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;

    /// A block of a static with a child that is reported, a leaked one, and one each of the
    /// harness, of a panic, and of the dynamic linker.
    const SCAN: &str = r##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "scan"},
        "blockList": [
            {"req": 16, "addr": "100", "alloc": "T", "contents": ["200", "0"]},
            {"req": 32, "addr": "200", "alloc": "T", "reps": ["T"]},
            {"req": 64, "addr": "300", "alloc": "T"},
            {"req": 128, "addr": "400", "alloc": "H"},
            {"req": 256, "addr": "500", "alloc": "P"},
            {"req": 512, "addr": "600", "alloc": "C"}],
        "traceTable": {"T": ["a", "b", "m"], "H": ["h", "m"], "P": ["p", "b", "m"], "C": ["c"]},
        "frameTable": {"a": "#00: alloc::vec::Vec::push (vec.rs:1)", "b": "#00: shop::tests::sells (src/lib.rs:7)",
            "p": "#00: std::panicking::panic_with_hook (panicking.rs:1)", "c": "#00: allocate_dtv (dl-tls.c:1)",
            "h": "#00: test::run_tests (/rustc/0123/library/test/src/lib.rs:1)", "m": "#00: shop::main (src/lib.rs:1)"},
        "memreport": {"version": 1, "statics": [{"module": "/shop", "offset": "10", "name": "shop::STOCK", "to": "100"}]}}"##;

    #[test]
    fn blocks_of_the_harness_and_reported_ones_are_not_left_behind() {
        let mut dump = read_slice(SCAN.as_bytes()).unwrap();
        assert!(dump.extension.is_some(), "{:?}", dump.notes);
        let left = left(&mut dump, &ExplainOptions::default()).unwrap();
        let bytes =
            |places: &[Place]| places.iter().map(|place| place.totals.usable()).collect::<Vec<_>>();
        assert_eq!((bytes(&left.unreported), bytes(&left.leaked)), (vec![16], vec![64]));
        let own = left.leaked[0].site.own.as_deref();
        assert_eq!(own, Some("shop::tests::sells (src/lib.rs:7)"));
    }
}
