//! Tests vectors, queues, lists, and iterators over vectors.

use std::collections::{BinaryHeap, LinkedList, VecDeque};

use dmd::assert_fully_reported;

use super::{Aligned, Nothing, text, texts};

#[test]
fn vectors() {
    assert_fully_reported!(Vec::<u64>::new());
    assert_fully_reported!(vec![1_u8]);
    assert_fully_reported!(vec![7_u64; 100_000]);
    assert_fully_reported!(Vec::<String>::with_capacity(10));
    let mut slack = Vec::with_capacity(1000);
    slack.extend(texts(10));
    assert_fully_reported!(slack);
    assert_fully_reported!(vec![Aligned(1); 3]);
    assert_fully_reported!(vec![Nothing; 1000]);
    assert_fully_reported!(vec![vec![texts(3).collect::<Vec<_>>(); 4]; 5]);
    assert_fully_reported!([text(3), text(40)]);
    assert_fully_reported!(texts(100).map(|text| (text.len(), text)).collect::<BinaryHeap<_>>());
    assert_fully_reported!(BinaryHeap::<u32>::with_capacity(70));
    assert_fully_reported!(BinaryHeap::<u32>::new());
}

#[test]
fn iterators_over_vectors() {
    assert_fully_reported!(Vec::<String>::new().into_iter());
    let mut iterator = texts(10).collect::<Vec<_>>().into_iter();
    assert_fully_reported!(iterator.clone());
    assert_eq!(iterator.by_ref().take(9).count(), 9);
    assert_fully_reported!(iterator);
    let mut iterator = vec![Aligned(1); 3].into_iter();
    assert_eq!(iterator.by_ref().count(), 3);
    assert_fully_reported!(iterator);
    assert_fully_reported!(vec![Nothing; 3].into_iter());
}

#[test]
fn deques() {
    assert_fully_reported!(VecDeque::<u64>::new());
    assert_fully_reported!(VecDeque::<u64>::with_capacity(10));
    assert_fully_reported!(VecDeque::<u8>::with_capacity(100_000));
    assert_fully_reported!(VecDeque::from([Nothing; 10]));
    let mut deque: VecDeque<_> = texts(10).collect();
    deque.shrink_to_fit();
    deque.rotate_left(5);
    assert!(!deque.as_slices().1.is_empty(), "wrapped around");
    assert_fully_reported!(deque);

    let mut last = VecDeque::with_capacity(8);
    last.extend(0..8_u64);
    last.drain(..7);
    assert_fully_reported!(last.clone());
    assert_fully_reported!(last);

    let mut emptied = VecDeque::from(vec![Aligned(1); 5]);
    emptied.drain(..);
    assert_fully_reported!(emptied);
}

#[test]
fn lists() {
    assert_fully_reported!(LinkedList::<u8>::new());
    assert_fully_reported!(texts(100).collect::<LinkedList<_>>());
    assert_fully_reported!([Nothing; 10].into_iter().collect::<LinkedList<_>>());
    assert_fully_reported!((0..10).map(Aligned).collect::<LinkedList<_>>());
}
