//! Tests the derive: numbers, the fields that claims refer to, and the options of fields.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;

use memreport::{MallocSizeOf, Ops, measure};

// No allocator is declared here, so sizes are the requested ones and can be written down.
#[track_caller]
fn owns<T: ?Sized + MallocSizeOf>(value: &T, bytes: usize, blocks: usize) {
    let measured = measure(value);
    assert_eq!((measured.bytes, measured.blocks, measured.computed), (bytes, blocks, 0));
}

#[derive(MallocSizeOf)]
struct Named {
    text: String,
    lists: Vec<Vec<u8>>,
    number: u32,
}

#[derive(MallocSizeOf)]
struct Numbered(Vec<u8>, u64, Box<u64>);

#[derive(MallocSizeOf)]
struct Unit;

#[derive(MallocSizeOf)]
enum Never {}

#[derive(MallocSizeOf)]
enum Plain {
    One,
    Two = 5,
}

#[derive(MallocSizeOf)]
enum Mixed {
    Unit,
    Tuple(Vec<u8>, String),
    Named { text: String, r#type: Box<[u8]> },
    Empty {},
}

#[test]
fn structs_own_what_their_fields_own() {
    let named = Named { text: "x".repeat(100), lists: vec![vec![0; 33], vec![]], number: 1 };
    owns(&named, 100 + 48 + 33, 3);
    owns(&Numbered(vec![0; 70], named.number.into(), Box::new(1)), 70 + 8, 2);
    owns(&Unit, 0, 0);
    owns(&None::<Never>, 0, 0);
}

#[test]
fn enums_own_what_their_variant_owns() {
    owns(&[Plain::One, Plain::Two], 0, 0);
    owns(&Mixed::Unit, 0, 0);
    owns(&Mixed::Empty {}, 0, 0);
    owns(&Mixed::Tuple(vec![0; 40], "y".repeat(50)), 40 + 50, 2);
    owns(&Mixed::Named { text: "z".repeat(60), r#type: vec![1; 70].into() }, 60 + 70, 2);
}

#[derive(MallocSizeOf)]
struct Generic<'a, T: Clone, U, const N: usize>
where
    U: Default,
{
    borrowed: &'a Vec<u8>,
    either: Cow<'a, [u8]>,
    values: [T; N],
    _marker: PhantomData<U>,
}

/// A type that is not measurable.
#[derive(Default)]
struct Unmeasurable;

#[test]
fn generic_types_are_measured() {
    let lent = vec![0_u8; 500];
    let generic = Generic::<_, Unmeasurable, 2> {
        borrowed: &lent,
        either: Cow::Owned(vec![0; 90]),
        values: ["a".repeat(30), "b".repeat(40)],
        _marker: PhantomData,
    };
    owns(&generic, 90 + 30 + 40, 3);
    assert_eq!(generic.borrowed.len(), 500);
}

#[derive(MallocSizeOf)]
struct WithHasher<K, V, S> {
    map: HashMap<K, V, S>,
}

#[derive(MallocSizeOf)]
struct Projected<I: Iterator> {
    next: Option<I::Item>,
    last: Option<<I as Iterator>::Item>,
    #[malloc_size_of(ignore = "iterators cannot be looked into")]
    _rest: I,
}

#[test]
fn only_what_is_measured_needs_to_be_measurable() {
    let map: HashMap<u8, u8, std::hash::BuildHasherDefault<std::hash::DefaultHasher>> =
        HashMap::default();
    owns(&WithHasher { map }, 0, 0);
    let mut words = ["a".repeat(20)].into_iter();
    let next = words.next();
    owns(&Projected { next, last: None, _rest: words }, 20, 1);
}

#[derive(MallocSizeOf)]
struct List {
    value: u64,
    next: Option<Box<List>>,
}

#[derive(MallocSizeOf)]
struct Tree<T> {
    value: T,
    children: Vec<Tree<T>>,
    itself: Option<Box<Self>>,
}

#[derive(MallocSizeOf)]
struct Even<T>(Option<Box<Odd<T>>>, T);

#[derive(MallocSizeOf)]
struct Odd<T>(Vec<Even<T>>, PhantomData<T>);

#[test]
fn recursive_types_are_measured() {
    let list = List { value: 0, next: Some(Box::new(List { value: 1, next: None })) };
    owns(&list, 16, 1);
    assert_eq!(list.value + 1, list.next.as_ref().unwrap().value);

    let leaf = || Tree { value: "v".repeat(80), children: Vec::new(), itself: None };
    let tree = Tree { value: "w".repeat(90), children: vec![leaf(), leaf()], itself: None };
    let children = 2 * size_of::<Tree<String>>();
    owns(&tree, 90 + children + 2 * 80, 4);

    let inner = vec![Even(None, "e".repeat(70))];
    let even = Even(Some(Box::new(Odd(inner, PhantomData))), "f".repeat(75));
    let bytes = size_of::<Odd<String>>() + size_of::<Even<String>>();
    owns(&even, bytes + 70 + 75, 4);
}

/// A list that is dropped without recursion, as its length requires.
#[derive(Default, MallocSizeOf)]
struct LongList {
    next: Option<Box<LongList>>,
}

impl Drop for LongList {
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

#[test]
fn a_list_of_a_million_nodes_fits_any_stack() {
    let test = || {
        let mut list = LongList::default();
        for _ in 0..1_000_000 {
            list = LongList { next: Some(Box::new(list)) };
        }
        owns(&list, 8_000_000, 1_000_000);
    };
    std::thread::Builder::new().stack_size(512 * 1024).spawn(test).unwrap().join().unwrap();
}

#[derive(MallocSizeOf)]
struct Choices {
    #[malloc_size_of(ignore = "owned by the window")]
    _skipped: Vec<u8>,
    #[malloc_size_of(with = twice)]
    foreign: Vec<u8>,
    #[malloc_size_of(shallow)]
    outside: Vec<String>,
    #[malloc_size_of(shared = elsewhere)]
    parent: Rc<Vec<u8>>,
    #[malloc_size_of(shared = first)]
    first: Rc<Vec<u8>>,
    /// Seen values. Not heard ones.
    #[malloc_size_of(part)]
    seen: Vec<u8>,
    #[malloc_size_of(part = "kept/long")]
    r#type: Parts,
}

#[derive(MallocSizeOf)]
struct Parts {
    #[malloc_size_of(part)]
    inner: Vec<u8>,
    other: Vec<u8>,
}

fn twice<'a>(bytes: &'a Vec<u8>, ops: &Ops<'a>) {
    ops.add(bytes);
    ops.add(bytes);
}

#[test]
fn choices_are_kept() {
    let shared = Rc::new(vec![0; 300]);
    let choices = Choices {
        _skipped: vec![0; 1000],
        foreign: vec![0; 40],
        outside: vec!["not looked at".to_owned()],
        parent: Rc::clone(&shared),
        first: shared,
        seen: vec![0; 50],
        r#type: Parts { inner: vec![0; 60], other: vec![0; 70] },
    };
    let rc = 40 + 300;
    let parts = 50 + 60 + 70;
    owns(&choices, 2 * 40 + 24 + rc + parts, 2 + 1 + 2 + 3);

    let measured = measure(&choices);
    let parts: Vec<_> =
        measured.parts.iter().map(|p| (p.path.as_str(), p.bytes, p.description)).collect();
    assert_eq!(
        parts,
        [
            ("seen", 50, "Seen values."),
            ("kept/long", 70, "What `Choices.type` owns."),
            ("kept/long/inner", 60, "What `Parts.inner` owns."),
        ]
    );
    assert_eq!(choices.parent.len(), choices.first.len());
}

#[derive(Default, MallocSizeOf)]
struct Circle {
    #[malloc_size_of(shared = here)]
    next: RefCell<Option<Rc<Circle>>>,
    name: String,
}

/// The field that always counts counts twice, visibly for DMD, but does not recurse forever.
#[test]
fn circles_end() {
    let circle = Rc::new(Circle { name: "n".repeat(30), ..Circle::default() });
    circle.next.replace(Some(Rc::clone(&circle)));
    owns(&circle, 2 * (16 + size_of::<Circle>()) + 30, 3);
    circle.next.take();
}

macro_rules! made_by_macro {
    ($name:ident, $field:ident: $ty:ty) => {
        #[derive(MallocSizeOf)]
        struct $name {
            $field: $ty,
            #[malloc_size_of(ignore = "made by a macro")]
            _fixed: Vec<u8>,
        }
    };
}

made_by_macro!(Made, list: Vec<u8>);

#[test]
fn types_in_functions_and_macros_are_measured() {
    #[derive(MallocSizeOf)]
    enum Local<T> {
        Both(T, #[malloc_size_of(ignore = "in a function")] Vec<u8>),
    }
    owns(&Local::Both(vec![0_u8; 44], vec![1; 9]), 44, 1);
    owns(&Made { list: vec![0; 45], _fixed: vec![0] }, 45, 1);
}

/// A type that cannot be measured.
struct Foreign<T>(T);

#[derive(MallocSizeOf)]
struct Lent<T> {
    text: String,
    #[malloc_size_of(reachable)]
    first: Foreign<T>,
    #[malloc_size_of(reachable)]
    list: Vec<Foreign<Box<u8>>>,
}

#[test]
fn what_is_reachable_adds_no_bytes_and_is_counted() {
    // No bound is inferred: `Rc<Foreign<u8>>` cannot be measured either.
    let first = Foreign(Rc::new(Foreign(7)));
    let lent = Lent { text: "t".repeat(50), first, list: vec![Foreign(Box::new(1))] };
    let measured = measure(&vec![lent]);
    assert_eq!((measured.blocks, measured.inferred), (2, 2));
    assert_eq!(measured.bytes, size_of::<Lent<Rc<Foreign<u8>>>>() + 50);
}

#[test]
fn skipped_fields_are_listed_with_their_place() {
    let skipped = memreport::skipped_fields();
    let of = |owner: &str| skipped.iter().find(|field| field.owner == owner).copied().unwrap();
    let source = include_str!("derive.rs");
    let line_of = |text: &str| {
        let position = source.lines().position(|line| line.trim_start().starts_with(text));
        u32::try_from(position.unwrap() + 1).unwrap()
    };
    let choices = of("Choices");
    assert_eq!((choices.module, choices.field), ("derive", "_skipped"));
    assert_eq!(choices.reason, "owned by the window");
    assert!(choices.file.ends_with("derive.rs"), "{}", choices.file);
    assert_eq!(choices.line, line_of("_skipped: Vec<u8>,"));

    let local = of("Local");
    assert_eq!((local.field, local.line), ("Both.1", line_of("Both(T,")));
    // A field that the macro generates has the line of the macro's call.
    assert_eq!(of("Made").line, line_of("made_by_macro!(Made"));
}

#[derive(MallocSizeOf)]
struct Unsized<T: ?Sized> {
    name: String,
    rest: T,
}

trait Shape: MallocSizeOf {
    fn corners(&self) -> usize;
}

#[derive(MallocSizeOf)]
struct Polygon {
    points: Vec<(f64, f64)>,
}

impl Shape for Polygon {
    fn corners(&self) -> usize {
        self.points.len()
    }
}

#[test]
fn values_of_any_size_are_measured() {
    let boxed: Box<Unsized<[String]>> =
        Box::new(Unsized { name: "n".repeat(30), rest: ["r".repeat(40)] });
    owns(&boxed, 48 + 30 + 40, 3);

    let shape: Box<dyn Shape> = Box::new(Polygon { points: vec![(0.0, 1.0); 3] });
    owns(&shape, 24 + 48, 2);
    assert_eq!(shape.corners(), 3);

    let value: Box<dyn MallocSizeOf> = Box::new(RefCell::new(vec![0_u8; 99]));
    owns(&value, 32 + 99, 2);
}

mod reexported {
    pub(crate) mod deep {
        pub(crate) use memreport as renamed;
    }
}

#[derive(MallocSizeOf)]
#[malloc_size_of(crate = crate::reexported::deep::renamed)]
struct Renamed {
    #[malloc_size_of(part, shared = here)]
    value: Rc<u64>,
    #[malloc_size_of(ignore = "renamed")]
    _other: u8,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = "T: Measurable, T::Inner: MallocSizeOf")]
struct Bounded<T: Measurable> {
    #[malloc_size_of(with = Measurable::measure)]
    value: T,
    inner: Option<T::Inner>,
}

trait Measurable {
    type Inner;
    fn measure<'a>(&'a self, ops: &Ops<'a>);
}

impl Measurable for Unmeasurable {
    type Inner = String;
    fn measure<'a>(&'a self, ops: &Ops<'a>) {
        ops.computed(0);
    }
}

#[test]
fn attributes_of_the_type_are_followed() {
    owns(&Renamed { value: Rc::new(1), _other: 0 }, 24, 1);
    owns(&Bounded { value: Unmeasurable, inner: Some("i".repeat(26)) }, 26, 1);
}

/// Functions of types that no impl can name.
#[derive(MallocSizeOf)]
struct Handlers<T> {
    _borrowing: for<'a> fn(&'a str) -> &'a str,
    _generic: fn(&T),
    _unsafe: Option<unsafe fn(u8)>,
    _foreign: Option<extern "C" fn(u32)>,
    _many: fn(u8, u8, u8, u8, u8, u8, u8),
    name: String,
}

#[derive(MallocSizeOf)]
enum Handler {
    Function(fn(&str)),
    Name(String),
}

#[test]
fn functions_own_nothing_whatever_their_type() {
    let handlers = Handlers::<Unmeasurable> {
        _borrowing: str::trim,
        _generic: |_| {},
        _unsafe: None,
        _foreign: None,
        _many: |_, _, _, _, _, _, _| {},
        name: "n".repeat(26),
    };
    owns(&handlers, 26, 1);
    owns(&Handler::Function(|_| {}), 0, 0);
    owns(&Handler::Name("n".repeat(26)), 26, 1);
}
