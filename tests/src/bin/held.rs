//! A heap with known references, among statics, cycles, leaks, and an index with a reporter.
//! `held REPORT` saves DMD's view of it.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::{hint, io};

use memreport::MallocSizeOf;

dmd::global_allocator!();

/// An entry of the cache.
struct Entry {
    key: u64,
    text: Vec<u8>,
}

#[expect(clippy::vec_box, reason = "each entry must be a block of its own")]
static CACHE: Mutex<Vec<Box<Entry>>> = Mutex::new(Vec::new());

struct Page {
    text: Vec<u8>,
}

static SHELF: Mutex<Vec<Arc<Page>>> = Mutex::new(Vec::new());
static WINDOW: Mutex<Vec<Arc<Page>>> = Mutex::new(Vec::new());

struct Tree {
    leaf: Vec<u8>,
    kids: Option<[Box<Tree>; 2]>,
}

static TREE: Mutex<Option<Box<Tree>>> = Mutex::new(None);

struct Link {
    number: u64,
    next: Option<Box<Link>>,
}

static LIST: Mutex<Option<Box<Link>>> = Mutex::new(None);

/// A node with a handle to another, which may point back.
struct Person {
    friend: RefCell<Option<Rc<Person>>>,
    photo: Vec<u8>,
}

#[derive(MallocSizeOf)]
struct Index {
    names: Vec<String>,
    #[malloc_size_of(ignore = "made again when needed")]
    scratch: Vec<u16>,
}

fn main() -> ExitCode {
    match argument().map_or_else(|| Err(io::ErrorKind::InvalidInput.into()), save) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn save(report: String) -> io::Result<()> {
    fill();
    let names = (0..50).map(|number| format!("{number:0>300}")).collect();
    let index = Arc::new(Index { names, scratch: vec![7; 4_321] });
    let _registration = memreport::report_value("explicit/index", &index, "An index.");
    (0..10).for_each(|_| leak());
    let kept = friends(6_000);
    let alone = myself();
    let snapshot = memreport::snapshot();
    hint::black_box((&kept, &alone));
    snapshot.save(report)
}

fn fill() {
    let entry = |key| Box::new(Entry { key, text: vec![1; 1_000] });
    *locked(&CACHE) = (0..100).map(entry).collect();
    let pages: [_; 10] = std::array::from_fn(|_| Arc::new(Page { text: vec![2; 7_000] }));
    locked(&SHELF).extend_from_slice(&pages);
    locked(&WINDOW).extend(pages);
    *locked(&TREE) = Some(tree(9));
    let list = (0..10_000).fold(None, |next, number| Some(Box::new(Link { number, next })));
    *locked(&LIST) = list;
    let key = locked(&CACHE).iter().map(|entry| entry.key + entry.text.len() as u64).max();
    let length = locked(&LIST).as_ref().map(|first| first.number + u64::from(first.next.is_some()));
    hint::black_box((key, length, locked(&SHELF).first().map(|page| page.text.len())));
}

fn locked<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a tree with this many levels below the root.
fn tree(levels: u32) -> Box<Tree> {
    let kids = levels.checked_sub(1).map(|below| [tree(below), tree(below)]);
    let tree = Box::new(Tree { leaf: vec![3; 200], kids });
    hint::black_box((&tree.leaf, &tree.kids));
    tree
}

/// Returns a handle to the first of two nodes that hold each other.
fn friends(photo: usize) -> Rc<Person> {
    let person = |friend| {
        let person = Person { friend: RefCell::new(friend), photo: vec![4; photo] };
        hint::black_box(&person.photo);
        Rc::new(person)
    };
    let first = person(None);
    let second = person(Some(Rc::clone(&first)));
    *first.friend.borrow_mut() = Some(second);
    first
}

/// Leaks two nodes that only each other holds.
fn leak() {
    drop(friends(5_000));
}

/// Returns a node that holds itself, and is not leaked.
fn myself() -> Rc<Person> {
    let person = Rc::new(Person { friend: RefCell::new(None), photo: vec![5; 800] });
    *person.friend.borrow_mut() = Some(Rc::clone(&person));
    person
}

/// Returns the first argument.
fn argument() -> Option<String> {
    // Not inlined: the program's path is freed again, and its address must not stay on the stack,
    // where a scan would find it and take the next block there for held.
    #[inline(never)]
    fn read() -> Option<String> {
        std::env::args().nth(1)
    }
    #[inline(never)]
    fn clear_stack() {
        hint::black_box([0_u8; 64 << 10]);
    }
    let argument = read();
    clear_stack();
    argument
}
