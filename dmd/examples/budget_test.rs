//! A test suite that checks memory: of a type, of a piece of code, and of the whole program.
//!
//! Run it with `cargo test -p memreport-dmd --example budget_test`. `Cargo.toml` declares it with
//! `test = true`, so that its tests run like those of any test binary.

use std::sync::Mutex;

use memreport::{MallocSizeOf, Ops};

// In a test binary this also keeps the table of blocks, which the checks need. `$DMD` is not
// needed.
dmd::global_allocator!();

/// An index of words. Programs usually derive `MallocSizeOf`.
#[derive(Default)]
struct Index {
    words: Vec<String>,
}

impl MallocSizeOf for Index {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.words);
    }
}

impl Index {
    fn add(&mut self, word: &str) {
        self.words.push(word.to_owned());
    }

    fn contains(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }
}

static INDEX: Mutex<Option<Index>> = Mutex::new(None);

memreport::reporter!("explicit/index", INDEX, "All words.");

fn main() {
    let mut index = Index::default();
    index.add("heap");
    assert!(index.contains("heap"));
    if let Ok(mut place) = INDEX.lock() {
        *place = Some(index);
    }
}

#[cfg(test)]
mod tests {
    use super::{Index, main};
    use dmd::testing::{Baseline, Budget};

    /// Fails when `Index` gets a field that its `MallocSizeOf` does not measure.
    #[test]
    fn an_index_reports_all_its_memory() {
        let mut index = Index::default();
        index.add("heap");
        dmd::assert_fully_reported!(index);
    }

    /// Fails when a look-up starts to allocate, or `add` allocates more than twice or leaks.
    #[test]
    fn allocations_are_within_budgets() {
        let mut index = Index::default();
        index.add("heap");
        Budget::new().max_blocks(0).assert(|_| assert!(index.contains("heap")));
        Budget::new().max_blocks(2).max_bytes(1000).no_leak().assert(|_| {
            let mut index = Index::default();
            index.add("heap");
            index
        });
    }

    /// Fails when more than 5 % of what the test allocates has no reporter, or anything has two.
    #[test]
    fn the_heap_is_accounted_for() {
        let since = Baseline::new();
        main();
        super::INDEX.lock().unwrap().as_mut().unwrap().words.extend(vec!["word".repeat(100); 1000]);
        since.assert_classified(5.0);
    }
}
