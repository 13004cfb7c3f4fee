//! Every impl for std's types, against the truth: what a value reports is exactly what is freed when it is dropped.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::hash::{BuildHasher, DefaultHasher};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

use dmd::assert_fully_reported;
use memreport::{MallocSizeOf, Measured, measure};

dmd::global_allocator!();

/// A type with an alignment beyond what the allocator gives by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, MallocSizeOf)]
#[repr(align(128))]
struct Aligned(u8);

/// A type without a size, of which no two values are the same.
#[derive(Clone, Copy, Debug, Default, MallocSizeOf)]
struct Nothing;

fn text(length: usize) -> String {
    "t".repeat(length)
}

fn texts(number: usize) -> impl Iterator<Item = String> {
    (0..number).map(|index| text(index % 100))
}

/// Exact, and nothing from a formula. For values that are not dropped, or not alone.
#[track_caller]
fn owns_blocks<T: ?Sized + MallocSizeOf>(value: &T, blocks: usize) -> Measured {
    let measured = measure(value);
    assert_eq!((measured.blocks, measured.computed, measured.busy), (blocks, 0, 0));
    measured
}

#[test]
fn plain_values_own_nothing() {
    owns_blocks(&(1_u8, 2_i128, 3.0_f64, 'c', true, (), Duration::ZERO, Instant::now()), 0);
    owns_blocks(&(PhantomData::<String>, &text(9), "text", std::num::NonZeroU8::MIN, 1..9), 0);
    owns_blocks(
        &(std::sync::atomic::AtomicU64::new(1), measure as fn(&()) -> Measured as usize),
        0,
    );
    owns_blocks(&(std::net::IpAddr::from([1, 2, 3, 4]), std::thread::current().id()), 0);
    owns_blocks(&(text as fn(usize) -> String), 0);
}

#[test]
fn strings() {
    assert_fully_reported!(String::new());
    assert_fully_reported!(text(1));
    assert_fully_reported!(text(1 << 20));
    let mut slack = String::with_capacity(5000);
    slack.push('x');
    assert_fully_reported!(slack);
    assert_fully_reported!((
        OsString::from(text(33)),
        OsString::with_capacity(99),
        OsString::new()
    ));
    assert_fully_reported!((PathBuf::from(text(33)), PathBuf::with_capacity(99), PathBuf::new()));
    assert_fully_reported!((CString::new(text(33)).unwrap(), CString::default()));
}

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

trait Shape: MallocSizeOf {
    fn corners(&self) -> usize;
}

#[derive(MallocSizeOf)]
struct Polygon {
    name: Cow<'static, str>,
    points: Vec<(f64, f64)>,
}

impl Shape for Polygon {
    fn corners(&self) -> usize {
        self.points.len()
    }
}

#[test]
fn boxes() {
    assert_fully_reported!(Box::new(1_u8));
    assert_fully_reported!(Box::new(Nothing));
    assert_fully_reported!(Box::new(Aligned(1)));
    assert_fully_reported!(Box::new(Box::new(text(10))));
    assert_fully_reported!(texts(10).collect::<Box<[String]>>());
    assert_fully_reported!((Box::<[String]>::default(), Box::<str>::default()));
    assert_fully_reported!(text(50).into_boxed_str());
    assert_fully_reported!(Box::<Path>::from(Path::new("some/path")));
    assert_fully_reported!((Box::<OsStr>::from(OsStr::new("os")), Box::<CStr>::from(c"c")));
    assert_fully_reported!(Box::pin(text(60)));
    assert_fully_reported!(Pin::new(Box::new([text(60), text(1)])));
    let shape = Polygon { name: Cow::Owned(text(20)), points: vec![(0.0, 0.0); 7] };
    assert_eq!(shape.corners(), 7);
    let flat = Polygon { name: Cow::Borrowed("flat"), points: Vec::new() };
    assert_fully_reported!(vec![Box::new(shape) as Box<dyn Shape>, Box::new(flat)]);
}

#[test]
fn composed_values() {
    assert_fully_reported!((text(1), Some(text(2)), None::<String>, Ok::<_, ()>(text(3))));
    assert_fully_reported!((Err::<(), _>(text(4)), Reverse(text(5)), text(6)..text(7)));
    assert_fully_reported!((text(8)..=text(9), std::ops::Bound::Excluded(text(10)), ..text(11)));
    assert_fully_reported!((
        (text(1),),
        (text(1), text(2), text(3), text(4), text(5), text(6), text(7), text(8), text(9)),
        std::task::Poll::Ready(text(10)),
        std::ops::ControlFlow::<String, String>::Break(text(11)),
    ));
    // Not given back by dropping, but owned.
    let kept = ManuallyDrop::new(text(70));
    owns_blocks(&kept, 1);
    drop(ManuallyDrop::into_inner(kept));
}

#[test]
fn cells() {
    assert_fully_reported!((Cell::new(1_u8), Cell::new(None::<&str>)));
    assert_fully_reported!(RefCell::new(texts(10).collect::<Vec<_>>()));
    assert_fully_reported!((OnceCell::<String>::new(), OnceCell::from(text(20))));
    assert_fully_reported!((OnceLock::<String>::new(), OnceLock::from(text(20))));
    assert_fully_reported!((Mutex::new(text(30)), RwLock::new(text(40))));
}

#[test]
fn what_is_locked_is_busy() {
    let value = (RefCell::new(text(10)), Mutex::new(text(20)), RwLock::new(text(30)));
    {
        let _held = (value.0.borrow_mut(), value.1.lock().unwrap(), value.2.write().unwrap());
        let measured = measure(&value);
        assert_eq!((measured.blocks, measured.busy), (0, 3));
    }
    let _lent = (value.0.borrow(), value.2.read().unwrap());
    owns_blocks(&value, 3);
}

#[test]
fn what_is_poisoned_is_measured() {
    let value = (Mutex::new(text(20)), RwLock::new(text(30)));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = (value.0.lock(), value.1.write());
        panic!("poisons both");
    }));
    assert!(panicked.is_err() && value.0.is_poisoned() && value.1.is_poisoned());
    assert_fully_reported!(value);
}

struct Panics;

impl MallocSizeOf for Panics {
    fn add_size_of_excluding_this<'a>(&'a self, _ops: &memreport::Ops<'a>) {
        panic!("cannot be measured");
    }
}

#[test]
fn a_measurement_that_panics_poisons_nothing() {
    let value = (Mutex::new(Panics), RefCell::new(Panics), RwLock::new(Panics));
    let panics = |value: &dyn MallocSizeOf| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| measure(value))).is_err()
    };
    assert!(panics(&value.0) && panics(&value.1) && panics(&value.2));
    assert!(!value.0.is_poisoned() && !value.2.is_poisoned());
    assert!(value.0.try_lock().is_ok() && value.1.try_borrow_mut().is_ok());
    assert!(value.2.try_write().is_ok());
}

#[test]
fn shared_values_alone() {
    assert_fully_reported!((Rc::new(1_u8), Arc::new(2_u8)));
    assert_fully_reported!((Rc::new(Nothing), Arc::new(Nothing)));
    assert_fully_reported!((Rc::new(Aligned(1)), Arc::new(Aligned(2))));
    assert_fully_reported!((Rc::new(text(100)), Arc::new(text(200))));
    assert_fully_reported!((Rc::<str>::from("text"), Arc::<str>::from("text")));
    assert_fully_reported!((Rc::<str>::from(""), Arc::<str>::from("")));
    assert_fully_reported!((texts(7).collect::<Rc<[_]>>(), texts(7).collect::<Arc<[_]>>()));
    assert_fully_reported!((
        Rc::<[Aligned]>::from(vec![]),
        Arc::<[Aligned]>::from(vec![Aligned(1)])
    ));
    assert_fully_reported!((Rc::<Path>::from(Path::new("a")), Arc::<OsStr>::from(OsStr::new("b"))));
    let shape = Polygon { name: Cow::Owned(text(20)), points: Vec::new() };
    assert_fully_reported!(Arc::new(shape) as Arc<dyn Shape>);
}

#[test]
fn shared_values_within_one_value() {
    let rc = Rc::new(text(100));
    let weak = Rc::downgrade(&rc);
    assert_fully_reported!((weak.clone(), vec![rc.clone(), rc.clone()], Some(rc), weak));
    let arc: Arc<[String]> = texts(5).collect();
    let weak = Arc::downgrade(&arc);
    assert_fully_reported!(((), weak.clone(), [arc.clone(), arc.clone(), arc], weak));
}

#[test]
fn weak_owners_keep_the_block_alone() {
    assert_fully_reported!((std::rc::Weak::<String>::new(), std::sync::Weak::<String>::new()));
    assert_fully_reported!(Rc::downgrade(&Rc::new(text(100))));
    assert_fully_reported!(Arc::downgrade(&Arc::new(text(100))));
    assert_fully_reported!(Rc::downgrade(&Rc::new(Aligned(1))));
    assert_fully_reported!(Arc::downgrade(&Arc::new(Nothing)));
    let weak = Arc::downgrade(&Arc::new([1_u64; 20]));
    assert_fully_reported!([weak.clone(), weak.clone(), weak]);
    // While somebody else owns it, it is theirs.
    let elsewhere = Rc::new(text(100));
    owns_blocks(&Rc::downgrade(&elsewhere), 0);
}

/// Std keeps one block for all of these, which is not on the heap.
#[test]
fn shared_values_that_are_statics_own_nothing() {
    assert_fully_reported!((Arc::<str>::default(), Arc::<CStr>::default()));
    assert_fully_reported!((Arc::<[u8]>::default(), Arc::<[u128]>::default()));
    assert_fully_reported!((Arc::<[String]>::default(), Arc::<[Aligned]>::default()));
    assert_fully_reported!((Rc::<str>::default(), Rc::<CStr>::default(), Rc::<[u8]>::default()));
}

/// Its padding is memory that nobody has written.
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

/// Removals leave marks in the table that take up its capacity, until none is left.
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

/// Numbers that look random, and are the same each time.
fn scattered(seed: u64) -> impl Iterator<Item = u64> {
    let step = move |state: &u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99));
    std::iter::successors(Some(seed), step).map(|state| state >> 33)
}

/// As maps are used: entries come and go, with more coming at first and more going later.
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

#[derive(MallocSizeOf)]
struct Tree<T> {
    name: T,
    children: Vec<Tree<T>>,
    parents: HashMap<String, Box<Tree<T>>>,
    kind: Kind,
}

#[derive(MallocSizeOf)]
enum Kind {
    Leaf,
    Named { first: String, aliases: BTreeSet<Rc<str>> },
    Numbered(u32, Option<Box<Kind>>),
}

fn tree(depth: usize) -> Tree<String> {
    let kind = match depth % 3 {
        0 => Kind::Leaf,
        1 => Kind::Named { first: text(depth), aliases: BTreeSet::from(["a".into(), "b".into()]) },
        _ => Kind::Numbered(1, Some(Box::new(Kind::Numbered(2, None)))),
    };
    let children = if depth == 0 { Vec::new() } else { vec![tree(depth - 1), tree(depth - 1)] };
    let parents = (0..depth).map(|depth| (text(depth), Box::new(tree(depth / 3)))).collect();
    Tree { name: text(20), children, parents, kind }
}

#[test]
fn derived_trees() {
    assert_fully_reported!(tree(7));
    assert_fully_reported!(vec![tree(2), tree(0)]);
    let shared: Rc<str> = "shared".into();
    let aliases = BTreeSet::from([shared.clone()]);
    assert_fully_reported!((shared, Kind::Named { first: String::new(), aliases }));
}

/// A list, dropped without recursion.
#[derive(Default, MallocSizeOf)]
struct List {
    next: Option<Box<List>>,
    name: String,
}

impl Drop for List {
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

/// As a list, through a shared cell.
#[derive(Default, MallocSizeOf)]
struct Chain(RefCell<Option<Rc<Chain>>>);

impl Drop for Chain {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(node) = next {
            next = Rc::try_unwrap(node).ok().and_then(|node| node.0.take());
        }
    }
}

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread =
        std::thread::Builder::new().stack_size(512 * 1024).spawn(test).expect("threads can be had");
    thread.join().expect("the stack is enough");
}

fn list(nodes: usize) -> List {
    let mut list = List::default();
    for index in 0..nodes {
        let next = Some(Box::new(list));
        list = List { next, name: text(usize::from(index % 1000 == 0)) };
    }
    list
}

#[test]
fn a_long_list_fits_any_stack() {
    on_a_small_stack(|| assert_fully_reported!(list(20_000)));
}

#[test]
fn a_chain_of_cells_fits_any_stack() {
    on_a_small_stack(|| {
        let mut chain = Chain::default();
        for _ in 0..20_000 {
            chain = Chain(RefCell::new(Some(Rc::new(chain))));
        }
        assert_fully_reported!(chain);
    });
}
