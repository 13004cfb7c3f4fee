//! A census of the running program by each property that needs no symbols.

use std::hint::black_box;
use std::sync::Mutex;

use dmd::census::{Breakdown, Counted, Group, Node, take_census};
use memreport::{Field, MallocSizeOf, Ops};

dmd::global_allocator!();

const PAGES: i64 = 100;

struct Index {
    pages: Vec<Box<[u8]>>,
}

impl MallocSizeOf for Index {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        const FIELD: &Field = &Field::of::<Index>("pages", file!(), line!());
        ops.field(FIELD, &self.pages);
    }
}

static INDEX: Mutex<Option<Index>> = Mutex::new(None);
memreport::reporter!("explicit/index", INDEX, "Pages.");

/// Reported twice.
static SHARED: Mutex<Vec<u8>> = Mutex::new(Vec::new());
memreport::reporter!("explicit/shared", SHARED, "Bytes.");
memreport::reporter!("explicit/again", SHARED, "The same bytes.");

/// Unreported.
static DARK: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn build() {
    let pages = (0..PAGES).map(|_| black_box(vec![1; 4000]).into()).collect();
    *INDEX.lock().expect("nothing panics") = Some(Index { pages });
    *SHARED.lock().expect("nothing panics") = black_box(vec![1; 70_000]);
    let import = || {
        memreport::scope!("request");
        memreport::scope!("import");
        *DARK.lock().expect("nothing panics") = black_box(vec![1; 90_000]);
    };
    let importer = std::thread::Builder::new().name("importer".into());
    importer.spawn(import).expect("a thread").join().expect("it does not panic");
}

fn groups(node: &Node) -> &[Group] {
    match &node.counted {
        Counted::Groups(groups) | Counted::Several(groups) => groups,
        other => panic!("{other:?}"),
    }
}

#[test]
fn blocks_have_their_reporters_fields_scopes_threads_and_types() {
    dmd::start("1".parse().expect("options")).expect("the allocator is declared");
    build();
    let words = ["reporter", "field", "type", "scope", "state", "size"];
    let breakdowns: Vec<_> =
        words.iter().map(|words| Breakdown::of_words(words).expect("an axis")).collect();
    let census = take_census(&breakdowns.into()).expect("DMD tracks");
    // Returns the blocks of a group.
    let count = |axis: &str, key: &str| {
        let at = words.iter().position(|word| *word == axis).expect("an axis");
        let groups = groups(&groups(census.root())[at].node);
        let found = groups.iter().find(|group| group.key.describe() == key);
        found.map(|group| (group.node.amount.count, group.node.amount.bytes))
    };
    // The pages and the list of them. glibc gives 4,008 bytes for 4,000, and 1,608 for 1,600.
    let index = Some((PAGES + 1, PAGES * 4008 + 1608));
    let shared = Some((1, 70_008));
    let dark = Some((1, 90_008));
    assert_eq!(count("reporter", "explicit/index"), index);
    assert_eq!(count("reporter", "explicit/again and explicit/shared"), shared);
    assert_eq!(count("field", "grouped::Index.pages"), index);
    assert_eq!(count("field", "explicit/again and explicit/shared"), shared);
    assert_eq!(count("type", "owned by grouped::Index"), index);
    assert_eq!(count("scope", "request > import"), dark);
    assert_eq!(count("state", "once"), index);
    assert_eq!(count("state", "twice"), shared);
    assert_eq!(count("size", "65537-131072"), Some((2, 160_016)));

    let snapshot = memreport::snapshot();
    let sizes = dmd::Dump::of(&snapshot).expect("it is awake").by_requested_size();
    assert_eq!(sizes.get(&90_000), Some(&dmd::Sum { blocks: 1, bytes: 90_008 }));
}
