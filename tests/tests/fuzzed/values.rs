//! Values of a hundred structs of random shape, and of some enums. `build.rs` generates the types.
#![expect(
    clippy::type_complexity,
    clippy::large_enum_variant,
    clippy::redundant_allocation,
    reason = "nobody would write such types"
)]

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::CString;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread::LocalKey;
use std::vec;

use arrayvec::ArrayVec;
use dmd::Sum;
use indexmap::IndexMap;
use memreport::{Kind, MallocSizeOf, Report, Reports, Snapshot};
use smallvec::SmallVec;
use thin_vec::ThinVec;

/// A generator of values, with a budget of values and a count of blocks.
struct Random {
    state: u64,
    fuel: usize,
    /// The number of blocks that the values owned.
    blocks: usize,
}

impl Random {
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }

    /// Returns the length of a container.
    fn length(&mut self) -> usize {
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 { 0 } else { usize::try_from(self.below(5)).unwrap_or(0) }
    }
}

/// A type with random values.
trait Arbitrary {
    fn make(random: &mut Random) -> Self;
}

macro_rules! made_by {
    ($($ty:ty: |$random:ident| $make:expr;)*) => {$(
        impl Arbitrary for $ty {
            fn make($random: &mut Random) -> Self {
                $make
            }
        }
    )*};
}

/// Implements [`Arbitrary`] for types around a `T`.
macro_rules! made_around {
    ($($ty:ty: |$random:ident| $make:expr;)*) => {$(
        impl<T: Arbitrary> Arbitrary for $ty {
            fn make($random: &mut Random) -> Self {
                $make
            }
        }
    )*};
}

fn text(random: &mut Random) -> String {
    let length = usize::try_from(random.below(60)).unwrap_or(0);
    "t".repeat(length)
}

/// Returns a list with spare capacity.
fn list<T: Arbitrary>(random: &mut Random) -> Vec<T> {
    let mut list = Vec::with_capacity(random.length());
    list.extend((0..random.length()).map(|_| T::make(random)));
    list
}

/// Fills a map, and removes some entries again.
fn entries<K, T: Arbitrary>(
    random: &mut Random,
    key: impl Fn(&mut Random) -> K,
) -> impl Iterator<Item = (K, T)> {
    let entries: Vec<_> = (0..random.length()).map(|_| (key(random), T::make(random))).collect();
    entries.into_iter()
}

made_by! {
    u8: |random| random.next().to_le_bytes()[0];
    u32: |random| u32::try_from(random.below(1 << 31)).unwrap_or(0);
    (u16, bool): |random| (1, random.below(2) == 0);
    u64: |random| random.next();
    f64: |_random| 0.5;
    std::time::Duration: |random| Self::from_secs(random.below(9));
    std::num::NonZeroU32: |random| std::num::NonZeroU32::MIN.saturating_add(u32::make(random));
    String: |random| text(random);
    Box<str>: |random| text(random).into();
    Rc<str>: |random| text(random).into();
    Arc<str>: |random| text(random).into();
    Cow<'static, str>: |random| if random.below(2) == 0 { "static".into() } else { text(random).into() };
    PathBuf: |random| text(random).into();
    CString: |random| Self::new(text(random)).unwrap_or_default();
    BinaryHeap<u64>: |random| list::<u64>(random).into();
    BTreeSet<String>: |random| list::<String>(random).into_iter().collect();
    HashSet<String>: |random| list::<String>(random).into_iter().collect();
    bytes::Bytes: |random| {
        let whole = Self::from(text(random));
        // A slice shares the memory, of which it may be the only owner in the end.
        match random.below(3) {
            0 => whole,
            1 => whole.slice(whole.len() / 3..),
            _ => whole.slice(..whole.len() / 2),
        }
    };
    compact_str::CompactString: |random| text(random).into();
    smol_str::SmolStr: |random| text(random).into();
    serde_json::Value: |random| serde_json::json!({ text(random): [1, text(random), null, {}] });
    url::Url: |random| format!("https://example.org/{}", text(random)).parse().expect("an address");
    roaring::RoaringBitmap: |random| {
        let first = u32::make(random);
        list::<u8>(random).into_iter().map(|step| first.wrapping_mul(u32::from(step))).collect()
    };
    uuid::Uuid: |random| Self::from_u128(u128::from(random.next()));
}

made_around! {
    Option<T>: |random| if random.below(3) == 0 { None } else { Some(T::make(random)) };
    Box<T>: |random| Box::new(T::make(random));
    Vec<T>: |random| list(random);
    VecDeque<T>: |random| { let mut deque: Self = list(random).into(); deque.pop_front(); deque };
    LinkedList<T>: |random| list(random).into_iter().collect();
    Rc<T>: |random| Rc::new(T::make(random));
    Arc<T>: |random| Arc::new(T::make(random));
    Pin<Box<T>>: |random| Box::pin(T::make(random));
    RefCell<T>: |random| Self::new(T::make(random));
    Mutex<T>: |random| Self::new(T::make(random));
    RwLock<T>: |random| Self::new(T::make(random));
    OnceLock<T>: |random| if random.below(2) == 0 { Self::new() } else { T::make(random).into() };
    [T; 3]: |random| [T::make(random), T::make(random), T::make(random)];
    Box<[T]>: |random| list(random).into();
    Rc<[T]>: |random| list(random).into();
    Arc<[T]>: |random| list(random).into();
    BTreeMap<u16, T>: |random| {
        let mut map: Self = entries(random, |random| u16::from(u8::make(random))).collect();
        map.pop_last();
        map
    };
    HashMap<String, T>: |random| {
        let mut map: Self = entries(random, text).collect();
        map.retain(|key, _| key.len() % 4 > 0);
        map
    };
    Result<T, String>: |random| if random.below(2) == 0 { Err(text(random)) } else { Ok(T::make(random)) };
    (u8, T): |random| (1, T::make(random));
    vec::IntoIter<T>: |random| { let mut left = list(random).into_iter(); left.next(); left };
    SmallVec<[T; 2]>: |random| list(random).into_iter().collect();
    ThinVec<T>: |random| list(random).into_iter().collect();
    ArrayVec<T, 4>: |random| list(random).into_iter().collect();
    IndexMap<String, T>: |random| {
        let mut map: Self = entries(random, text).collect();
        map.pop();
        map
    };
    slab::Slab<T>: |random| {
        let mut slab: Self = list(random).into_iter().enumerate().collect();
        slab.try_remove(0);
        slab
    };
    parking_lot::Mutex<T>: |random| Self::new(T::make(random));
    triomphe::Arc<T>: |random| Self::new(T::make(random));
    generational_arena::Arena<T>: |random| list(random).into_iter().collect();
    rpds::List<T>: |random| list(random).into_iter().collect();
}

/// A value of any of the types.
trait Value: MallocSizeOf {
    /// Proves that it measures all it owns.
    fn prove(self: Box<Self>);

    fn type_name(&self) -> &'static str;
}

impl<T: MallocSizeOf> Value for T {
    fn prove(self: Box<Self>) {
        let value = *self;
        dmd::assert_fully_reported!(value);
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
}

fn make<T: Arbitrary + MallocSizeOf + 'static>(random: &mut Random) -> Box<dyn Value> {
    random.fuel = 200;
    Box::new(T::make(random))
}

include!(concat!(env!("OUT_DIR"), "/fuzzed.rs"));

const _: () = assert!(STRUCTS == 100 && NESTED >= 25, "a hundred structs, of many types");

#[test]
fn every_type_measures_all_it_owns() {
    let mut random = Random { state: 0x9e37_79b9_7f4a_7c15, fuel: 0, blocks: 0 };
    for _ in 0..20 {
        for make in MAKERS {
            let value = make(&mut random);
            random.blocks += memreport::measure(&*value).blocks;
            value.prove();
        }
    }
    assert!(random.blocks > 10_000, "{} blocks prove little", random.blocks);
    // In the same test, because the tracker is the process's.
    fill(&REPORTED, &mut random);
    collect_all();
    without_the_table(&mut random);
    // The table lacks what is made while tracking is off.
    dmd::stop();
    fill(&FURTHER, &mut random);
    dmd::start(dmd::Options::default()).expect("nobody else starts it");
    collect_all();
}

thread_local! {
    /// The values that are reported, on the thread that collects.
    static REPORTED: RefCell<Vec<Box<dyn Value>>> = const { RefCell::new(Vec::new()) };
    /// More of them.
    static FURTHER: RefCell<Vec<Box<dyn Value>>> = const { RefCell::new(Vec::new()) };
    /// A text that the reporter replaces.
    static REPLACED: RefCell<String> = const { RefCell::new(String::new()) };
}

fn fill(values: &'static LocalKey<RefCell<Vec<Box<dyn Value>>>>, random: &mut Random) {
    values.set((0..5).flat_map(|_| MAKERS.map(|make| make(random))).collect());
}

/// Returns the bytes of all reports of heap.
fn heap_reports(snapshot: &Snapshot) -> usize {
    let is_heap = |report: &&Report| {
        report.kind == Kind::Heap
            && report.path.starts_with("explicit/")
            && report.path != "explicit/heap-unclassified"
    };
    let amounts = snapshot.reports.iter().filter(is_heap).map(|report| report.amount);
    usize::try_from(amounts.sum::<i64>()).expect("it is positive")
}

/// Checks that a collection finds a block for each claim, with the bytes that were counted.
fn collect_all() {
    const TEXT: usize = 200;

    REPLACED.set(String::with_capacity(TEXT));
    let (values, texts) = ("explicit/values", "explicit/texts");
    let registration = memreport::register(move |reports: &mut Reports<'_>| {
        REPORTED.with_borrow(|reported| reports.measure(values, reported, "Values."));
        FURTHER.with_borrow(|further| reports.measure(values, further, "Values."));
        REPLACED.with_borrow_mut(|text| {
            reports.measure(texts, text, "A text that is freed before the end.");
            *text = String::new();
            *text = String::with_capacity(TEXT - 1);
            reports.measure(texts, text, "A text that is new, and perhaps at the same address.");
        });
    });
    let measured = [&REPORTED, &FURTHER].map(|list| list.with_borrow(memreport::measure));
    let text = REPLACED.with_borrow(memreport::measure).bytes;
    let snapshot = memreport::snapshot();
    drop(registration);
    let amount = |path: &str| -> usize {
        let reports = snapshot.reports.iter().filter(|report| report.path == path);
        reports.map(|report| usize::try_from(report.amount).expect("it is positive")).sum()
    };
    let bytes: usize = measured.iter().map(|measured| measured.bytes).sum();
    assert_eq!((amount(values), amount(texts)), (bytes, 2 * text));
    let dump = dmd::Dump::of(&snapshot).expect("it is awake");
    let summary = dump.summary();
    assert_eq!(dump.wrong_reports(), [""; 0]);
    assert_eq!((summary.twice.blocks, summary.under_reported, summary.over_reported), (0, 0, 0));
    let (found, other) = (summary.once.bytes, summary.reported_untracked);
    let computed = usize::try_from(summary.unmeasured).expect("it is positive");
    let sum = found + other + summary.reported_transient + computed;
    // The library reports some bytes of its own.
    assert_eq!(sum, heap_reports(&snapshot), "{summary:?} {measured:?}");
    if summary.untracked == Sum::default() {
        assert_eq!((other, summary.reported_transient), (0, 2 * text));
    } else {
        assert!(found > bytes / 4 && other > bytes / 8, "{found} and {other} of {bytes}");
    }
}

/// Checks values asleep, and with a table that does not have the blocks from before it began.
fn without_the_table(random: &mut Random) {
    let values: Vec<_> = (0..20).flat_map(|_| MAKERS.map(|make| make(random))).collect();
    let measure_all = || -> Vec<_> { values.iter().map(memreport::measure).collect() };
    let tracked = measure_all();
    dmd::stop();
    let asleep = measure_all();
    dmd::start(dmd::Options::default()).expect("nobody else starts it");
    let late = measure_all();
    let mut blocks = 0;
    for (((value, tracked), asleep), late) in values.iter().zip(tracked).zip(asleep).zip(late) {
        let name = (**value).type_name();
        if (asleep.computed, asleep.blocks) == (0, tracked.blocks) {
            assert_eq!(asleep.bytes, tracked.bytes, "asleep: {name}");
            blocks += asleep.blocks;
        }
        assert_eq!(late.bytes, asleep.bytes, "late: {name}");
    }
    assert!(blocks > 1000, "{blocks} blocks prove little");
    assert_freed_bytes(random);
}

/// Checks that values measure the bytes that dropping them frees; by a formula, at most as many.
fn assert_freed_bytes(random: &mut Random) {
    let live_bytes = || memreport::heap_counters().expect("they are counted").live_bytes();
    for _ in 0..20 {
        for make in MAKERS {
            let value = make(random);
            let (name, measured) = ((*value).type_name(), memreport::measure(&value));
            let before = live_bytes();
            drop(value);
            let short = before - live_bytes() - measured.bytes as u64;
            assert!(short == 0 || measured.computed > 0, "{name}: {short} bytes: {measured:?}");
        }
    }
}
