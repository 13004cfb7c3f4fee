//! Tests the typed tree of a heap with known owners, beside an allocator that counts.

use std::collections::HashMap;
use std::sync::OnceLock;

use memreport_analysis::ownership::{OwnerRow, OwnerTree, OwnerTreeOptions, RowKind};

use crate::scans::{self, Scan};

/// The scan of the program, and what its own allocator counted.
struct Subject {
    scan: Scan,
    /// By static: bytes and blocks.
    counted: HashMap<String, (u64, u64)>,
}

/// Returns the subject, which runs once.
fn subject() -> &'static Subject {
    static SUBJECT: OnceLock<Subject> = OnceLock::new();
    SUBJECT.get_or_init(|| {
        let scan = scans::of_program(env!("CARGO_BIN_EXE_owned"), "owned.json.gz");
        let number =
            |word: Option<&str>| word.and_then(|word| word.parse().ok()).expect("a number");
        let line = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter();
            let name = words.next().expect("a name");
            (name, (number(words.next().as_deref()), number(words.next().as_deref())))
        };
        let counted = scan.printed.lines().map(line).collect();
        Subject { scan, counted }
    })
}

fn tree(options: &OwnerTreeOptions) -> OwnerTree {
    let Scan { dump, types, .. } = &subject().scan;
    OwnerTree::new(dump, types, options).expect("it is a scan")
}

/// Returns the row at the end of these names, from the roots on.
fn row<'t>(tree: &'t OwnerTree, names: &[&str]) -> &'t OwnerRow {
    let mut rows = &tree.rows;
    let mut found = None;
    for name in names {
        let here = rows.iter().find(|row| row.name == *name);
        let here = here.unwrap_or_else(|| {
            let there: Vec<&String> = rows.iter().map(|row| &row.name).collect();
            panic!("no {name} of {names:?} among {there:?}")
        });
        rows = &here.children;
        found = Some(here);
    }
    found.expect("names")
}

#[test]
fn each_static_has_the_bytes_that_a_counting_allocator_counted() {
    let tree = tree(&OwnerTreeOptions::default());
    let counted = &subject().counted;
    assert_eq!(counted.len(), 8, "{counted:?}");
    for (name, &(bytes, blocks)) in counted {
        let row = row(&tree, &[&format!("owned::{name}")]);
        let found = (row.bytes, row.sum(|row| row.blocks));
        assert_eq!((row.kind, found), (RowKind::Static, (bytes, blocks)), "{name}");
    }
}

#[test]
fn the_rows_add_up_to_the_heap() {
    let tree = tree(&OwnerTreeOptions::default());
    let heap: u64 = subject().scan.dump.blocks.iter().map(|block| block.usable() * block.num).sum();
    let rows: u64 = tree.rows.iter().map(|root| root.sum(|row| row.own)).sum();
    assert_eq!((tree.bytes, rows), (heap, heap));
    assert_eq!(tree.blocks, subject().scan.dump.blocks.len() as u64);
    assert!(tree.named * 100 >= tree.bytes * 99, "{} of {}", tree.named, tree.bytes);
    assert!(tree.typed * 100 >= tree.bytes * 99, "{} of {}", tree.typed, tree.bytes);
}

#[test]
fn rows_are_fields_in_the_words_of_the_source() {
    let tree = tree(&OwnerTreeOptions::default());
    let index = "owned::INDEX";
    let (dyn_shape, json) = ("Box<(dyn owned::Shape + Send)>", "Vec<owned::Json>");
    let (circle, square) =
        (format!("{dyn_shape} = owned::Circle"), format!("{dyn_shape} = owned::Square"));
    let shapes = "Mutex<Vec<Box<(dyn owned::Shape + Send)>>>";
    let list = format!("value.List.0: {json}");
    let settings = "Object.0: BTreeMap<String, owned::Json>";
    let below = "below: Mutex<Vec<Arc<owned::Node>>>";
    let table: &[(&[&str], u64)] = &[
        (&[index, "terms: HashMap<Arc<str>, u32>"], 1),
        (&[index, "terms: HashMap<Arc<str>, u32>", "key: Arc<str>"], 500),
        (&[index, "documents: Vec<owned::Document>", "title: String"], 100),
        (&[index, "documents: Vec<owned::Document>", "pages: Vec<Vec<u32>>", "Vec<u32>"], 400),
        (&[index, "recent: VecDeque<Box<[u8; 100]>>", "Box<[u8; 100]>"], 30),
        (&["owned::SHAPES", shapes, &circle, "label: String"], 30),
        (&["owned::SHAPES", shapes, &square, "sides: Vec<f64>"], 30),
        (&["owned::SETTINGS", settings, "key: String"], 80),
        (&["owned::SETTINGS", settings, &list, "Text.0: String"], 80),
        (&["owned::NODES", "OnceLock<Arc<owned::Node>>", below, "Arc<owned::Node>"], 50),
        (&["owned::WORDS", "Mutex<Option<HashSet<String>>>", "String"], 200),
        (&["owned::TABLE", "Mutex<BTreeMap<u64, Box<u64>>>", "value: Box<u64>"], 300),
    ];
    for (names, blocks) in table {
        let row = row(&tree, names);
        assert_eq!((row.blocks, row.is_uncertain), (*blocks, false), "{names:?}");
    }
}

#[test]
fn an_entry_that_was_removed_is_not_held_by_its_collection() {
    let tree = tree(&OwnerTreeOptions::default());
    let removed = row(&tree, &["owned::REMOVED", "Mutex<Vec<usize>>", "Box<[u8; 1200]>"]);
    assert_eq!((removed.blocks, removed.is_uncertain), (40, true));
    for (collection, entry) in [
        ("list: Vec<Box<[u8; 1200]>>", "Box<[u8; 1200]>"),
        ("queue: VecDeque<Box<[u8; 1200]>>", "Box<[u8; 1200]>"),
        ("tree: BTreeMap<u8, Box<[u8; 1200]>>", "value: Box<[u8; 1200]>"),
        ("table: HashMap<u8, Box<[u8; 1200]>>", "value: Box<[u8; 1200]>"),
    ] {
        let kept = row(&tree, &["owned::EMPTIED", collection, entry]);
        assert_eq!((kept.blocks, kept.is_uncertain), (1, false), "{collection}");
    }
}

#[test]
fn spare_room_and_copies_are_counted() {
    let tree = tree(&OwnerTreeOptions::default());
    let documents = ["owned::INDEX", "documents: Vec<owned::Document>"];
    let terms = row(&tree, &["owned::INDEX", "terms: HashMap<Arc<str>, u32>"]);
    // An entry has 24 bytes.
    assert_eq!((terms.used, terms.places, terms.spare), (500, 1024, 524 * 24));
    let titles = row(&tree, &[&documents[..], &["title: String"]].concat());
    assert_eq!(titles.used, 100 * 29);
    assert_eq!(titles.places, titles.used + titles.spare);
    assert!(titles.spare > 0 && titles.copies == 0, "{titles:?}");
    // The documents have four different pages, of 20 to 23 numbers. Scans have whole words, so
    // those of an odd number cannot be compared.
    let pages = row(&tree, &[&documents[..], &["pages: Vec<Vec<u32>>", "Vec<u32>"]].concat());
    assert_eq!((pages.blocks, pages.copied_blocks), (400, 2 * 99));
    assert!(pages.copies > 0 && pages.copies < pages.compared, "{pages:?}");
    assert!(pages.compared < pages.own, "{pages:?}");
}

#[test]
fn excluded_pointers_hold_nothing() {
    let mut options = OwnerTreeOptions::default();
    options.not_through = vec!["Arc<owned::…>".to_owned()];
    let tree = tree(&options);
    let nodes = row(&tree, &["owned::NODES"]);
    // Nothing else holds them, so they stay where they are.
    assert_eq!(Some(&(nodes.bytes, nodes.sum(|row| row.blocks))), subject().counted.get("NODES"));
}
