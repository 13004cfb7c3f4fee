//! Handles of a cycle: whether the counts of its `Rc`s and `Arc`s show that it is leaked.

use rustc_hash::FxHashMap;

use crate::analysis::frames::{BlockType, Sites};
use crate::analysis::scan::links::BlockRanges;

/// The comparison of the counts in a cycle's `Rc`s and `Arc`s with the handles that are in the
/// cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HandleCount {
    /// Every counted handle is in the cycle itself, which is therefore leaked.
    Leaked,
    /// This many counted handles are in no block: something outside the heap holds the cycle, or a
    /// handle was forgotten.
    Outside(u64),
    /// The cycle has no counts, or they do not agree with its handles.
    Unknown,
}

/// Compares the counts in the shared blocks of a cycle with the handles that are in it.
///
/// A shared block begins with its count of strong handles, followed by the count of weak ones,
/// which is one higher.
pub(super) fn count_handles(ranges: &BlockRanges<'_>, sites: &Sites, cycle: &[u32]) -> HandleCount {
    let dump = ranges.dump();
    let is_shared = |block: u32| {
        let site = sites.get(dump.blocks.at(block as usize).kind.alloc);
        matches!(&site.block_type, BlockType::Known(name)
            if name.starts_with("Rc<") || name.starts_with("Arc<"))
    };
    let mut handles: FxHashMap<u32, u64> = FxHashMap::default();
    handles.extend(cycle.iter().filter(|&&block| is_shared(block)).map(|&block| (block, 0)));
    for &block in cycle.iter().take(if handles.is_empty() { 0 } else { cycle.len() }) {
        ranges.each_link_of(block, |link| {
            if let Some(handles) = handles.get_mut(&link.to) {
                *handles += 1;
            }
        });
    }
    let (mut outside, mut buffer) = (0, Vec::new());
    let mut is_known = !handles.is_empty();
    for (block, found) in handles {
        let counted = match ranges.first_words(block, 2, &mut buffer) {
            [strong, weak] if *strong > 0 && *weak > 0 => strong.checked_add(weak - 1),
            _ => None,
        };
        // More words than counted handles: some of the words are not handles.
        match counted.and_then(|counted| counted.checked_sub(found)) {
            Some(more) => outside += more,
            None => is_known = false,
        }
    }
    match outside {
        _ if !is_known => HandleCount::Unknown,
        0 => HandleCount::Leaked,
        more => HandleCount::Outside(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::frames::Style;
    use crate::read::read_slice;

    /// Compares the counts of two shared blocks, at 1000 and 2000, with these words.
    fn counted(first: &str, second: &str, name: &str) -> HandleCount {
        let text = format!(
            r##"{{"version":5,"invocation":{{"dmdEnvVar":"1","mode":"scan"}},"blockList":[
            {{"req":64,"addr":"1000","alloc":"C","contents":[{first}]}},
            {{"req":64,"addr":"2000","alloc":"C","contents":[{second}]}}],
            "memreport":{{"version":1,"symbols":{{"c":{{"function":"f","name":"{name}",
            "file":"/rustc/1/library/alloc/src/boxed.rs","line":1,"inlined":true}}}}}},
            "traceTable":{{"C":["c","m"]}},"frameTable":{{"c":"#00: c","m":"#00: shop::main (src/main.rs:1)"}}}}"##
        );
        let dump = read_slice(text.as_bytes()).unwrap();
        let sites = Sites::new(&dump, 8, &Style::default());
        count_handles(&BlockRanges::new(&dump).unwrap(), &sites, &[0, 1])
    }

    #[test]
    fn counts_are_compared_with_the_handles_in_the_cycle() {
        let [rc, arc, boxed] = ["alloc::rc::RcInner<A>", "alloc::sync::ArcInner<A>", "shop::A"]
            .map(|of| format!("new<{of}>"));
        let second = r#""1","1","1000""#;
        let table = [
            (r#""1","1","2000""#, second, &rc, HandleCount::Leaked),
            (r#""1","1","2000""#, second, &arc, HandleCount::Leaked),
            (r#""1","1","2000""#, second, &boxed, HandleCount::Unknown),
            // A strong handle elsewhere, a weak one, and both.
            (r#""2","1","2000""#, second, &rc, HandleCount::Outside(1)),
            (r#""1","2","2000""#, second, &rc, HandleCount::Outside(1)),
            (r#""3","2","2000""#, r#""1","3","1000""#, &rc, HandleCount::Outside(5)),
            // More words than handles, and words that are no counts.
            (r#""1","1","2000","2000""#, second, &rc, HandleCount::Unknown),
            (r#""0","1","2000""#, second, &rc, HandleCount::Unknown),
            (r#""1","0","2000""#, second, &rc, HandleCount::Unknown),
            (r#""2000""#, second, &rc, HandleCount::Unknown),
        ];
        for (first, second, name, expected) in table {
            assert_eq!(counted(first, second, name), expected, "{first} and {second}: {name}");
        }
    }
}
