//! Tests maps and sets, both new and after use.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, DefaultHasher};

use dmd::assert_fully_reported;

use super::{Aligned, Nothing, text, texts};

/// A type whose padding is uninitialized memory.
#[derive(Clone, Default)]
struct Padded {
    _small: u8,
    _seed: u64,
    _last: u16,
}

impl BuildHasher for Padded {
    type Hasher = DefaultHasher;
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher::new()
    }
}

#[test]
fn hash_maps() {
    assert_fully_reported!(HashMap::<String, String>::new());
    for number in [1, 3, 4, 7, 8, 14, 15, 100, 1000] {
        assert_fully_reported!(
            (0..number).map(|index| (index, text(9))).collect::<HashMap<_, _>>()
        );
        assert_fully_reported!((0..=u8::MAX).take(number).collect::<HashSet<u8>>());
        assert_fully_reported!((0..number).map(text).collect::<HashSet<_>>());
        assert_fully_reported!(HashMap::<u8, u16>::with_capacity(number));
        assert_fully_reported!(HashMap::<String, Aligned, Padded>::with_capacity_and_hasher(
            number,
            Padded::default()
        ));
        assert_fully_reported!(HashSet::<Aligned>::with_capacity(number));
    }
    assert_fully_reported!(HashMap::<u64, u64>::with_capacity(1_000_000));
    assert_fully_reported!(HashMap::from([(1_u64, Nothing), (2, Nothing)]));
}

#[test]
fn hash_maps_without_a_size() {
    assert_fully_reported!(HashSet::from([()]));
    assert_fully_reported!(HashMap::from([((), ())]));
    assert_fully_reported!(HashMap::from([((), text(10))]));
    assert_fully_reported!(HashMap::from([((), Aligned(1))]));
    assert_fully_reported!(HashSet::<()>::with_capacity(100));
}

#[test]
fn hash_maps_after_removals() {
    for number in [1, 7, 28, 500, 10_000_u64] {
        let mut map: HashMap<u64, String, Padded> = HashMap::default();
        map.extend((0..number).map(|index| (index, text(9))));
        map.retain(|key, _| key % 97 == 5);
        assert_fully_reported!(map);

        let mut map: HashMap<u64, String> = (0..number).map(|index| (index, text(9))).collect();
        map.retain(|_, _| false);
        assert_fully_reported!(map);

        let mut set: HashSet<u64> = (0..number).collect();
        set.clear();
        assert_fully_reported!(set);
    }
}

/// Removals leave tombstones that use up the table's capacity.
#[test]
fn a_hash_map_without_capacity_may_have_a_table() {
    let mut map: HashMap<u64, u64> = HashMap::with_capacity(448);
    let capacity = map.capacity();
    let mut next = 0;
    while map.capacity() == capacity || next < 100_000 {
        map.insert(next, next);
        if map.len() > 400 {
            map.remove(&(next - 400));
        }
        next += 1;
        if next > 200_000 {
            break;
        }
    }
    map.retain(|_, _| false);
    assert_fully_reported!(map);
}

#[test]
fn ordered_maps() {
    assert_fully_reported!(BTreeMap::<u64, String>::new());
    for number in [1, 6, 11, 12, 13, 100, 144, 145, 5000_u64] {
        assert_fully_reported!((0..number).map(|key| (key, text(9))).collect::<BTreeMap<_, _>>());
        // Small keys lie beside other small fields of a node.
        let small = (0..number).filter_map(|key| u16::try_from(key).ok());
        assert_fully_reported!(small.map(|key| (key, Box::new(key))).collect::<BTreeMap<_, _>>());
        let mut grown = BTreeMap::new();
        let mut set = BTreeSet::new();
        for key in 0..number {
            grown.insert(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), Aligned(1));
            set.insert(text(usize::try_from(key).unwrap() % 300));
        }
        assert_fully_reported!(grown.clone());
        grown.retain(|key, _| key % 5 == 0);
        assert_fully_reported!(grown);
        assert_fully_reported!(set);
        assert_fully_reported!((0..number).map(|key| (key, Nothing)).collect::<BTreeMap<_, _>>());
    }
    assert_fully_reported!(BTreeMap::from([((), text(9))]));
    assert_fully_reported!((BTreeSet::from([()]), BTreeMap::from([((), ())])));
}

/// Seven levels of nodes.
#[test]
fn a_high_ordered_map() {
    let mut map = BTreeMap::new();
    (0..300_000_u32).for_each(|key| assert!(map.insert(key, ()).is_none()));
    assert_fully_reported!(map);
}

#[test]
fn emptied_ordered_maps_keep_a_leaf() {
    fn emptied<K: Ord + Clone, V>(entries: impl Iterator<Item = (K, V)>) -> BTreeMap<K, V> {
        let mut map: BTreeMap<K, V> = entries.collect();
        while map.pop_first().is_some() {}
        map
    }
    assert_fully_reported!(emptied((0..1).map(|key| (key, text(9)))));
    assert_fully_reported!(emptied((0..1000_u64).map(|key| (key, key))));
    assert_fully_reported!(emptied(texts(100).map(|key| (key, Aligned(1)))));
    assert_fully_reported!(emptied((0..5).map(|key| ((), key))));
    assert_fully_reported!(emptied((0..5).map(|_| ((), ()))));
    let mut cleared: BTreeSet<u64> = (0..100).collect();
    cleared.clear();
    assert_fully_reported!(cleared);
}

/// Returns random numbers that are the same in every run.
fn scattered(seed: u64) -> impl Iterator<Item = u64> {
    let step = move |state: &u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99));
    std::iter::successors(Some(seed), step).map(|state| state >> 33)
}

/// Inserts and removes entries, with more insertions at first and more removals later.
#[test]
fn containers_after_many_operations() {
    for seed in 0..40 {
        let mut ordered = BTreeMap::new();
        let mut hashed = HashMap::new();
        let mut deque = VecDeque::new();
        for (index, number) in scattered(seed).take(40 * usize::try_from(seed).unwrap()).enumerate()
        {
            let key = number % 512;
            if number / 512 % 40 > seed {
                ordered.insert(key, text(index % 9));
                hashed.insert(key, text(index % 9));
                deque.push_back(key);
            } else {
                ordered.remove(&key);
                hashed.remove(&key);
                deque.pop_front();
                deque.push_front(key);
            }
        }
        assert_fully_reported!(ordered);
        assert_fully_reported!(hashed);
        assert_fully_reported!(deque);
    }
}
