//! Tests types that implement the trait of the crate `malloc_size_of`, mixed with types that
//! implement ours.

use dmd::assert_fully_reported;
use malloc_size_of::{MallocSizeOf as TheirMallocSizeOf, MallocSizeOfOps};
use memreport::{MallocSizeOf, bridge, measure};
use thin_vec::ThinVec;

use super::{owns_blocks, text};

/// A type with our trait, with a list that has theirs.
#[derive(MallocSizeOf)]
struct Style {
    name: String,
    #[malloc_size_of(with = bridge::theirs)]
    rules: ThinVec<String>,
    #[malloc_size_of(with = bridge::theirs)]
    notes: Vec<Note>,
    #[malloc_size_of(with = bridge::theirs)]
    margins: ThinVec<Note>,
}

/// A type with their trait, with a text that has ours; lists of theirs hold it.
struct Note(compact_str::CompactString, Box<u64>);

impl TheirMallocSizeOf for Note {
    fn size_of(&self, ops: &mut MallocSizeOfOps) -> usize {
        bridge::ours(&self.0, ops) + self.1.size_of(ops)
    }
}

fn style() -> Style {
    let note = |length| Note(text(length).into(), Box::new(1));
    Style {
        name: text(30),
        rules: (1..20).map(text).collect(),
        notes: vec![note(10), note(100), note(200)],
        margins: [note(50), note(5)].into_iter().collect(),
    }
}

#[test]
fn each_trait_measures_what_implements_the_other() {
    assert_fully_reported!(style());
    // The name, nineteen rules and their list, three notes with two long texts in a list, two with
    // one.
    owns_blocks(&style(), 1 + 20 + (1 + 3 + 2) + (1 + 2 + 1));
}

#[test]
fn what_is_estimated_is_computed() {
    #[derive(MallocSizeOf)]
    struct Map(#[malloc_size_of(with = bridge::theirs)] std::collections::HashSet<u64>);
    struct Estimated;
    impl TheirMallocSizeOf for Estimated {
        fn size_of(&self, _ops: &mut MallocSizeOfOps) -> usize {
            1000
        }
    }
    #[derive(MallocSizeOf)]
    struct Ours(#[malloc_size_of(with = bridge::theirs)] Estimated);
    let measured = measure(&Ours(Estimated));
    assert_eq!((measured.bytes, measured.computed, measured.blocks), (1000, 1000, 0));
    assert_fully_reported!(Map((0..100).collect()));
}

#[test]
fn theirs_alone_can_ask_for_ours() {
    extern "C" fn nothing(_: *const std::ffi::c_void) -> usize {
        0
    }
    let bytes = bridge::ours(&text(1000), &mut MallocSizeOfOps::new(nothing, None, None));
    assert_eq!(bytes, measure(&text(1000)).bytes);
}
