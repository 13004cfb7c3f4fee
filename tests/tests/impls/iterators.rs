//! Tests iterators.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};

use dmd::assert_fully_reported;

use super::{owns_blocks, text, texts};

#[test]
fn over_what_can_be_looked_at() {
    let mut left = [text(1), text(20), text(30)].into_iter();
    assert_eq!(left.next(), Some(text(1)));
    assert_fully_reported!(left);
    let mut list: Vec<String> = texts(20).collect();
    assert_fully_reported!(list.drain(3..9));
    assert_eq!(list.len(), 14);
    owns_blocks(&(list.iter(), list.chunks(3), "a text".chars(), text(9).drain(..)), 0);
}

/// Returns an iterator that has begun, with elements remaining.
fn begun<I: Iterator>(mut iterator: I, taken: usize) -> I {
    iterator.by_ref().take(taken).for_each(drop);
    iterator
}

#[test]
fn over_what_owns_nothing() {
    for taken in [0, 3, 90] {
        assert_fully_reported!(begun((0..100_u64).collect::<VecDeque<_>>().into_iter(), taken));
        assert_fully_reported!(begun((0..100_u16).collect::<BinaryHeap<_>>().into_iter(), taken));
        assert_fully_reported!(begun((0..100_u8).collect::<HashSet<_>>().into_iter(), taken));
        let map: HashMap<u64, [u8; 3]> = (0..100).map(|key| (key, [1; 3])).collect();
        assert_fully_reported!(begun(map.into_iter(), taken));
    }
    assert_fully_reported!((0..2_u64).collect::<LinkedList<_>>().into_iter());
    assert_fully_reported!(
        (0..9_u64).map(|key| (key, key)).collect::<BTreeMap<_, _>>().into_iter()
    );
    assert_fully_reported!((0..9_u64).collect::<BTreeSet<_>>().into_iter());
    assert_fully_reported!(VecDeque::<u64>::new().into_iter());
    assert_fully_reported!(HashMap::<u64, u64>::new().into_iter());
}

/// The remaining elements cannot be reached.
#[test]
fn lower_bounds() {
    owns_blocks(&texts(50).collect::<VecDeque<_>>().into_iter(), 1);
    owns_blocks(&texts(50).collect::<HashSet<_>>().into_iter(), 1);
    owns_blocks(&texts(50).collect::<LinkedList<_>>().into_iter(), 2);
}
