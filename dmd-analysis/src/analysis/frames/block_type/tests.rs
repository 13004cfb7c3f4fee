//! Types of blocks by the frames that allocated them.

use std::sync::Arc;

use super::BlockType;
use crate::read::{Dump, Frame, FrameId, Symbol};

/// Derives the type from frames, innermost first, one a line: `name @ file`, `(out of line)`,
/// `(folded)`.
fn derived(frames: &str) -> String {
    let frame = |line: &str| {
        let (name, file) = line.split_once(" @ ").unwrap();
        let (file, how) = file.split_once(" (").unwrap_or((file, ""));
        let symbol = Symbol {
            function: name.split('<').next().unwrap().into(),
            name: Some(name.into()),
            file: Some(Arc::from(file.replace("alloc/", "/rustc/0123/library/alloc/src/"))),
            line: Some(1),
            inlined: how.is_empty(),
            folded: how.starts_with("folded"),
            module: None,
        };
        Frame { text: "".into(), symbol: Some(Box::new(symbol)) }
    };
    let dump = Dump { frames: frames.lines().map(frame).collect(), ..Dump::default() };
    let trace: Vec<FrameId> =
        (0..dump.frames.len()).map(|at| FrameId(u32::try_from(at).unwrap())).collect();
    BlockType::of_trace(&dump, &trace).describe()
}

#[test]
fn library_functions_show_the_type() {
    let table = [
        ("new<subject::Tree> @ alloc/boxed.rs", "Box<subject::Tree>"),
        ("new_uninit_slice<subject::Tree> @ alloc/boxed.rs", "[subject::Tree]"),
        (
            "f @ alloc/alloc.rs\nwith_capacity_in<u32, alloc::alloc::Global> @ alloc/raw_vec/mod.rs",
            "[u32]",
        ),
        (
            "grow<alloc::alloc::Global> @ alloc/raw_vec.rs\npush<String, alloc::alloc::Global> @ alloc/vec/mod.rs",
            "[String]",
        ),
        ("new<alloc::sync::ArcInner<subject::User>> @ alloc/boxed.rs", "Arc<subject::User>"),
        ("new<alloc::rc::RcInner<[u8; 4]>> @ alloc/boxed.rs", "Rc<[u8; 4]>"),
        (
            "{closure#0}<u8, alloc::alloc::Global> @ alloc/sync.rs\nallocate_for_layout<[u8], F> @ alloc/sync.rs",
            "Arc<[u8]>",
        ),
        ("reserve<alloc::sync::Arc<X, alloc::alloc::Global>, A> @ alloc/vec/mod.rs", "[Arc<X>]"),
        (
            "new<alloc::collections::btree::node::LeafNode<u32, fn(u8) -> u8>> @ alloc/boxed.rs",
            "BTreeMap<u32, fn(u8) -> u8> node",
        ),
        (
            "reserve_rehash<(u32, String), F> @ /r/hashbrown-0.15.2/src/raw/mod.rs",
            "HashMap table of (u32, String)",
        ),
        (
            "with_capacity_in<u8, alloc::alloc::Global> @ alloc/raw_vec/mod.rs\nto_owned @ alloc/str.rs",
            "String",
        ),
    ];
    for (frames, expected) in table {
        assert_eq!(derived(&format!("{frames}\nbuild @ /home/me/src/main.rs")), expected);
    }
}

#[test]
fn shared_code_shows_no_type() {
    let growth = "grow_one<gimli::AttributeValue, alloc::alloc::Global> @ alloc/raw_vec/mod.rs (out of line)";
    let table = [
        // The inlined caller has the type, unlike the shared growth.
        (vec![growth, "push<String, alloc::alloc::Global> @ alloc/vec/mod.rs"], "[String]"),
        (vec![growth], "type unknown, allocated in build"),
        (
            vec!["with_capacity_in<u32, alloc::alloc::Global> @ alloc/raw_vec/mod.rs (folded)"],
            "one of [u32] and types with equal code",
        ),
        (
            vec![
                "with_capacity_in<u32, alloc::alloc::Global> @ alloc/raw_vec/mod.rs (folded)",
                "push<String, alloc::alloc::Global> @ alloc/vec/mod.rs",
            ],
            "[String]",
        ),
        (
            vec![
                "new<subject::A> @ alloc/boxed.rs (folded)",
                "push<String, alloc::alloc::Global> @ alloc/vec/mod.rs",
            ],
            "one of Box<subject::A> and types with equal code",
        ),
    ];
    for (frames, expected) in table {
        assert_eq!(
            derived(&format!("{}\nbuild @ /home/me/src/main.rs", frames.join("\n"))),
            expected
        );
    }
    assert_eq!(derived(""), "type unknown");
}

/// Returns frames with the paths of a registry for `INDEXMAP` and so on, and short names of
/// allocators.
fn of_crates(frames: &str) -> String {
    let registry = "/r/registry/src/index.crates.io-1";
    let api2 = format!("{registry}/allocator-api2-0.2.21/src/stable");
    frames
        .replace("INDEXMAP", &format!("{registry}/indexmap-2.14.2/src"))
        .replace("HASHBROWN", &format!("{registry}/hashbrown-0.17.1/src"))
        .replace("THIN", &format!("{registry}/thin-vec-0.2.21/src"))
        .replace("BUMPALO", &format!("{registry}/bumpalo-3.20.4/src"))
        .replace("API2", &api2)
        .replace("Inner>", "hashbrown::alloc::inner::Global>")
        .replace("Api2>", "allocator_api2::stable::alloc::global::Global>")
}

#[test]
fn collections_of_crates_show_the_type() {
    let raw = "new_uninitialized<Inner> @ HASHBROWN/raw.rs\nreserve_rehash<usize, Inner> @ HASHBROWN/raw.rs";
    let table = [
        (
            format!("{raw}\ninsert_unique<alloc::string::String, u64> @ INDEXMAP/inner.rs\ninsert<alloc::string::String, u64, S> @ INDEXMAP/map.rs"),
            "IndexMap<String, u64> table",
        ),
        (
            format!("{raw}\ninsert_unique<u32, ()> @ INDEXMAP/inner.rs\ninsert<u32, S> @ INDEXMAP/set.rs"),
            "IndexSet<u32> table",
        ),
        (format!("{raw}\nreserve @ INDEXMAP/inner.rs"), "IndexMap table"),
        (raw.to_owned(), "HashMap table of usize"),
        (
            "grow_one<indexmap::Bucket<u8, alloc::string::String>, alloc::alloc::Global> @ alloc/raw_vec/mod.rs".to_owned(),
            "IndexMap<u8, String> entries",
        ),
        ("with_capacity<u8, bool, Api2> @ HASHBROWN/map.rs".to_owned(), "HashMap table of (u8, bool)"),
        ("header_with_capacity<u16> @ THIN/lib.rs\npush<u16> @ THIN/lib.rs".to_owned(), "ThinVec<u16>"),
        ("grow_amortized<u16, Api2> @ API2/raw_vec.rs".to_owned(), "[u16]"),
        ("new_chunk @ BUMPALO/lib.rs".to_owned(), "chunk of bumpalo::Bump"),
        ("alloc @ alloc/alloc.rs".to_owned(), "memory allocated by hand in build"),
        ("exchange_malloc @ alloc/alloc.rs".to_owned(), "type unknown, allocated in build"),
    ];
    for (frames, expected) in table {
        let frames = format!("{}\nbuild @ /home/me/src/main.rs", of_crates(&frames));
        assert_eq!(derived(&frames), expected, "{frames}");
    }
}

#[test]
fn an_inlined_function_without_a_path_has_the_programs_function_around_it() {
    let table = [
        ("shop::text::store", "memory allocated by hand in fill, inlined into shop::text::store"),
        // A closure that the standard library calls.
        ("std::thread::local::LocalKey::with", "memory allocated by hand in fill"),
    ];
    for (around, expected) in table {
        let frames = format!(
            "alloc @ alloc/alloc.rs\nfill @ /home/me/src/text.rs\n{around} @ /home/me/src/text.rs (out of line)"
        );
        assert_eq!(derived(&frames), expected);
    }
}

#[test]
fn shared_bytes_are_a_text_or_one_of_two() {
    let made = "allocate_for_layout<[u8], F> @ alloc/sync.rs";
    let table = [
        (vec![made, "from<u8> @ alloc/sync.rs", "from @ alloc/sync.rs"], "Arc<str>"),
        (
            vec![made, "from<u8> @ alloc/sync.rs", "from @ /rustc/0/library/std/src/path.rs"],
            "Arc<Path>",
        ),
        (
            vec![made, "from<u8> @ alloc/sync.rs", "from @ /rustc/0/library/std/src/ffi/os_str.rs"],
            "Arc<OsStr>",
        ),
        (vec![made, "from<u8> @ alloc/sync.rs", "from @ alloc/ffi/c_str.rs"], "Arc<CStr>"),
        (vec![made, "from<u8> @ alloc/sync.rs"], "Arc<[u8]>"),
        // Optimised code may end in a call, which leaves no frame of `Arc<str>::from`.
        (vec![made, "from<u8> @ alloc/sync.rs (out of line)"], "one of Arc<[u8]>, Arc<str>"),
        (
            vec![
                "allocate_for_layout<[u8], F> @ alloc/rc.rs (out of line)",
                "from<u8> @ alloc/rc.rs (out of line)",
            ],
            "Rc<[u8]>",
        ),
        (
            vec![
                "allocate_for_layout<[u8], F> @ alloc/rc.rs (out of line)",
                "from<u8> @ alloc/rc.rs",
                "from<u8> @ alloc/rc.rs (out of line)",
            ],
            "one of Rc<[u8]>, Rc<str>",
        ),
        (vec!["allocate_for_layout<[[u8; 4]], F> @ alloc/sync.rs"], "Arc<[[u8; 4]]>"),
    ];
    for (frames, expected) in table {
        let frames = frames.join("\n");
        assert_eq!(derived(&format!("{frames}\nbuild @ /home/me/src/main.rs")), expected);
    }
}
