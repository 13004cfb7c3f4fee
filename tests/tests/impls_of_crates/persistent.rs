//! Tests persistent collections, whose nodes several versions share.

use archery::{ArcK, ArcTK, RcK, SharedPointer};
use dmd::assert_fully_reported;
use memreport::measure;

use super::{Aligned, percent_seen, text, texts};

#[test]
fn pointers_of_any_kind() {
    assert_fully_reported!(SharedPointer::<String, RcK>::new(text(40)));
    assert_fully_reported!(SharedPointer::<String, ArcK>::new(text(40)));
    assert_fully_reported!(SharedPointer::<Aligned, ArcTK>::new(Aligned(1)));
    let shared = SharedPointer::<Vec<String>, ArcTK>::new(texts(9).collect());
    assert_fully_reported!([shared.clone(), shared]);
    assert_fully_reported!(SharedPointer::<(), RcK>::new(()));
}

#[test]
fn vectors_of_im() {
    for length in [0, 1, 2, 10, 64, 100] {
        assert_fully_reported!((0..length).collect::<im::Vector<u64>>());
        assert_fully_reported!(
            texts(usize::try_from(length).expect("small")).collect::<im::Vector<String>>()
        );
        assert_fully_reported!((0..length).collect::<imbl::Vector<u64>>());
        assert_fully_reported!(
            texts(usize::try_from(length).expect("small")).collect::<imbl::Vector<String>>()
        );
    }
    // Texts as long as a node, which were inline before.
    let mut vector = im::Vector::unit(text(40));
    (0..9).for_each(|_| vector.push_back(text(40)));
    assert_fully_reported!(vector);
    assert_fully_reported!((0..99).map(Aligned).collect::<im::Vector<_>>());
}

#[test]
fn versions_of_a_vector() {
    let first: im::Vector<String> = texts(200).collect();
    let mut second = first.clone();
    second.push_back(text(30));
    second.set(0, text(50));
    assert_fully_reported!([first, second]);
    let first: imbl::Vector<String> = texts(200).collect();
    let mut second = first.clone();
    second.push_front(text(30));
    assert_fully_reported!([first, second]);
}

#[test]
fn ordered_trees_of_im() {
    assert_fully_reported!((im::OrdMap::<u8, u8>::new(), im::OrdSet::<String>::new()));
    let map: im::OrdMap<usize, String> = texts(5000).enumerate().collect();
    let less = map.without(&77).update(5, text(70));
    assert_fully_reported!([map, less]);
    assert_fully_reported!(texts(700).collect::<im::OrdSet<String>>());
}

/// A hasher without collisions of small numbers, on which the depth of a tree depends.
#[derive(Default)]
struct Spread(u64);

impl std::hash::Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type Spreads = std::hash::BuildHasherDefault<Spread>;

#[test]
fn small_trees() {
    assert_fully_reported!((imbl::OrdMap::<u8, u8>::new(), imbl::HashMap::<u8, u8>::new()));
    assert_fully_reported!((0..100).zip(texts(100)).collect::<imbl::OrdMap<i32, String>>());
    assert_fully_reported!((im::HashMap::<u8, u8>::new(), im::HashSet::<String>::new()));
    assert_fully_reported!((0..20).zip(texts(20)).collect::<im::HashMap<u8, String, Spreads>>());
    let set: im::HashSet<u8, Spreads> = (0..20).collect();
    assert_fully_reported!([set.update(21), set.clone(), set]);
    type Map = imbl::GenericHashMap<u8, String, Spreads, RcK>;
    assert_fully_reported!((0..16).zip(texts(16)).collect::<Map>());
    let set: imbl::HashSet<String> = texts(9).collect();
    assert_fully_reported!([set.update(text(30)), set.clone(), set]);
}

#[test]
fn lists_and_stacks() {
    assert_fully_reported!((rpds::List::<u8>::new(), rpds::Stack::<u8>::new()));
    let list: rpds::List<String> = texts(50).collect();
    let longer = list.push_front(text(80));
    let shorter = list.drop_first().expect("it has elements");
    assert_fully_reported!((list, longer, shorter));
    let stack = rpds::StackSync::new_sync().push(text(9)).push(text(10));
    assert_fully_reported!([stack.push(text(11)), stack]);
    assert_fully_reported!((0..9).map(|_| ()).collect::<rpds::ListSync<_>>());
}

/// The crate gives no access to inner nodes.
#[test]
fn big_trees_are_lower_bounds() {
    let numbers = 0..10_000_u64;
    let pairs = || numbers.clone().map(|number| (number, number));
    let seen = [
        percent_seen(|| numbers.clone().collect::<im::Vector<_>>()),
        percent_seen(|| numbers.clone().collect::<imbl::Vector<_>>()),
        percent_seen(|| pairs().collect::<im::HashMap<_, _>>()),
        percent_seen(|| pairs().collect::<imbl::HashMap<_, _>>()),
        percent_seen(|| pairs().collect::<imbl::OrdMap<u64, u64>>()),
        percent_seen(|| numbers.clone().collect::<rpds::Vector<_>>()),
        percent_seen(|| numbers.clone().collect::<rpds::Queue<_>>()),
        percent_seen(|| pairs().collect::<rpds::HashTrieMap<_, _>>()),
        percent_seen(|| pairs().collect::<rpds::RedBlackTreeMap<_, _>>()),
    ];
    let at_least = [90, 90, 94, 92, 85, 65, 35, 25, 40];
    let holds = seen.iter().zip(at_least).all(|(seen, at_least)| (at_least..=100).contains(seen));
    assert!(holds, "{seen:?} percent, and not {at_least:?}");
}

#[test]
fn elements_of_trees_count_once() {
    let map: rpds::HashTrieMap<String, String> =
        texts(30).map(|text| (text.clone(), text)).collect();
    let set: rpds::RedBlackTreeSet<String> = texts(30).collect();
    let vector: rpds::Vector<String> = texts(30).collect();
    let queue: rpds::Queue<String> = texts(30).collect();
    let once = measure(&(&map, &set, &vector, &queue));
    assert_eq!(once.bytes, 0, "what is borrowed is somebody else's");
    let measured = measure(&(map.clone(), set.clone(), vector.clone(), queue.clone()));
    assert_eq!(
        measure(&[
            (map.clone(), set.clone(), vector.clone(), queue.clone()),
            (map, set, vector, queue)
        ]),
        measured
    );
}
