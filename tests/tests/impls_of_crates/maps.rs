//! Tests maps, sets and caches.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use dashmap::{DashMap, DashSet};
use dmd::assert_fully_reported;
use indexmap::{IndexMap, IndexSet};
use lru::LruCache;
use memreport::measure;
use serde_json::{Value, json};

use super::{Aligned, owns_blocks, text, texts};

/// Generates one test for each version and kind of table.
macro_rules! tables {
    ($($name:ident: $map:ty, $set:ty;)*) => {$(
        #[test]
        fn $name() {
            assert_fully_reported!(<$map>::default());
            assert_fully_reported!(<$set>::default());
            for number in [1, 3, 4, 7, 8, 28, 29, 500] {
                let mut map: $map = texts(number).map(|text| (text, Aligned(1))).collect();
                assert_fully_reported!(map.clone());
                map.retain(|key, _| key.len() % 2 == 0);
                assert_fully_reported!(map.clone());
                map.clear();
                assert_fully_reported!(map);
                let mut set: $set = texts(number).collect();
                set.reserve(number);
                assert_fully_reported!(set);
            }
        }
    )*};
}

type Fx = rustc_hash::FxBuildHasher;

tables! {
    maps_of_hashbrown: hashbrown::HashMap<String, Aligned>, hashbrown::HashSet<String>;
    maps_of_hashbrown_0_15: hashbrown_0_15::HashMap<String, Aligned>, hashbrown_0_15::HashSet<String>;
    maps_of_hashbrown_0_14: hashbrown_0_14::HashMap<String, Aligned>, hashbrown_0_14::HashSet<String>;
    maps_of_rustc_hash: rustc_hash::FxHashMap<String, Aligned>, rustc_hash::FxHashSet<String>;
    maps_of_ahash: ahash::AHashMap<String, Aligned>, ahash::AHashSet<String>;
    maps_of_indexmap: IndexMap<String, Aligned>, IndexSet<String, Fx>;
}

#[test]
fn tables_of_hashbrown() {
    let mut table = hashbrown::HashTable::new();
    for text in texts(100) {
        let hash = |text: &String| Fx::default().hash_one(text);
        table.insert_unique(hash(&text), text, hash);
    }
    assert_fully_reported!(table);
}

#[test]
fn ordered_maps_after_removals() {
    let mut map: IndexMap<u64, String> = (0..1000).map(|key| (key, text(9))).collect();
    map.retain(|key, _| key % 97 == 5);
    assert_fully_reported!(map.clone());
    map.shrink_to_fit();
    assert_fully_reported!(map);
    assert_fully_reported!(IndexSet::<u8>::with_capacity(100));
}

/// A hasher with a pointer to a shared block.
#[derive(Clone)]
struct Elsewhere(Arc<String>);

impl BuildHasher for Elsewhere {
    type Hasher = std::hash::DefaultHasher;
    fn build_hasher(&self) -> Self::Hasher {
        let mut hasher = Self::Hasher::default();
        self.0.hash(&mut hasher);
        hasher
    }
}

#[test]
fn what_a_hasher_leads_to_is_not_the_maps() {
    let hasher = Elsewhere(Arc::new(text(100)));
    let mut map = IndexMap::with_hasher(hasher.clone());
    map.extend(texts(100).map(|text| (text, 1)));
    assert_fully_reported!(map);
    drop(hasher);
}

#[test]
fn concurrent_maps() {
    assert_fully_reported!(DashMap::<String, Aligned>::new());
    assert_fully_reported!(texts(1000).map(|text| (text, Aligned(1))).collect::<DashMap<_, _>>());
    assert_fully_reported!(texts(1000).collect::<DashSet<_, ahash::RandomState>>());
    let map: DashMap<u64, String> = (0..1000).map(|key| (key, text(9))).collect();
    map.retain(|key, _| key % 7 == 0);
    assert_fully_reported!(map);
}

#[test]
fn shards_that_are_written_to_are_busy() {
    let map = DashMap::with_shard_amount(2);
    map.insert(1, text(10));
    let held = map.get_mut(&1).unwrap();
    let measured = measure(&map);
    assert_eq!((measured.blocks, measured.busy), (1, 1));
    drop(held);
    owns_blocks(&map, 3);
    let _lent = map.get(&1).unwrap();
    owns_blocks(&map, 3);
}

#[test]
fn caches_of_lru() {
    let mut cache = LruCache::new(std::num::NonZeroUsize::new(50).unwrap());
    assert_fully_reported!(cache.clone());
    for text in texts(80) {
        cache.put(text, Aligned(1));
    }
    assert_fully_reported!(cache);
    let mut unbounded = LruCache::unbounded();
    (0..100).for_each(|key| drop(unbounded.put(key, text(9))));
    unbounded.pop_lru();
    assert_fully_reported!(unbounded);
}

#[test]
fn caches_of_moka_are_lower_bounds() {
    let cache = moka::sync::Cache::new(1000);
    let empty = measure(&cache).bytes;
    let value = Arc::new(text(1000));
    for key in texts(10) {
        cache.insert(key, Arc::clone(&value));
    }
    cache.run_pending_tasks();
    let measured = measure(&cache);
    assert_eq!((measured.computed, measured.busy), (0, 0));
    // Ten keys and their counts, one value; maybe a new block behind the handle.
    assert!(measured.bytes >= empty + 10 * 40 + 1000, "{measured:?} of {empty}");
}

#[test]
fn json() {
    assert_fully_reported!(Value::Null);
    assert_fully_reported!(json!({}));
    let value = json!({
        "name": "a string of a few words",
        "numbers": [1, -2, 3.5, u64::MAX],
        "nested": {"deeper": {"deepest": [[], {}, null, true]}},
    });
    assert_fully_reported!(value.clone());
    assert_fully_reported!(vec![value; 20]);
    let wide: serde_json::Map<String, Value> =
        texts(1000).map(|key| (key.clone(), Value::String(key))).collect();
    assert_fully_reported!(wide.clone());
    let mut emptied = wide;
    emptied.retain(|_, _| false);
    assert_fully_reported!(emptied);
}

/// The stack suffices to measure the value, but not to drop it.
#[test]
fn deep_json() {
    let on_a_stack_of = |bytes| std::thread::Builder::new().stack_size(bytes);
    let outer = on_a_stack_of(64 << 20).spawn(move || {
        let mut value = Value::Null;
        for depth in 0..5000 {
            value = match depth % 2 {
                0 => Value::Array(vec![value]),
                _ => Value::Object([(String::from("deeper"), value)].into_iter().collect()),
            };
        }
        std::thread::scope(|scope| {
            let inner = on_a_stack_of(512 << 10).spawn_scoped(scope, || owns_blocks(&value, 7500));
            inner.expect("threads can be had").join().expect("the stack is enough");
        });
        assert_fully_reported!(value);
    });
    outer.expect("threads can be had").join().expect("the stack is enough");
}

#[test]
fn http_messages() {
    use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
    assert_fully_reported!(HeaderMap::<HeaderValue>::new());
    let mut headers = HeaderMap::new();
    for name in texts(30) {
        let name = name.replace(' ', "-");
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name.clone(), HeaderValue::from_str(&text(50)).unwrap());
        headers.append(name, HeaderValue::from_static("static"));
    }
    headers.insert(http::header::ACCEPT, HeaderValue::from_static("text/html"));
    assert_fully_reported!(headers);
    let uri: Uri = "https://user@example.org:8080/a/path?with=a&query".parse().unwrap();
    assert_fully_reported!(uri);
    assert_fully_reported!(Uri::from_static("/a/static/path"));
    let scheme: Uri = "something-else://example.org/a".parse().unwrap();
    assert_fully_reported!(scheme);
    assert_fully_reported!((Method::GET, Method::from_bytes(b"A-METHOD-OF-OUR-OWN").unwrap()));
    assert_fully_reported!(Method::from_bytes(b"SHORT").unwrap());
}

#[test]
fn order_maps() {
    use ordermap::{OrderMap, OrderSet};
    let map: OrderMap<String, String> = texts(50).map(|text| (text.clone(), text)).collect();
    assert_fully_reported!(map.clone());
    assert_fully_reported!(OrderMap::<u8, u8>::with_capacity(100));
    let mut set: OrderSet<String> = map.into_keys().collect();
    set.retain(|text| text.len() % 2 == 0);
    assert_fully_reported!(set.clone());
    set.clear();
    assert_fully_reported!(set);
    assert_fully_reported!(OrderSet::<String>::new());
}
