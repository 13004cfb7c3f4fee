//! Tests Mozilla's two functions, their derives, and sizes from a function of the caller's.
#![expect(unsafe_code, reason = "defines a size function and measures behind raw pointers")]

use std::cell::Cell;
use std::ffi::c_void;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use memreport::{
    MallocSizeOf, Measured, Ops, OwnsBlock, SizeOfExcludingThis, SizeOfIncludingThis, Traversal,
    measure,
};

// No allocator is declared here, so sizes are the requested ones and can be written down.

/// Derives the trait by its own name alone.
#[derive(SizeOfExcludingThis)]
struct Embedded {
    text: String,
    #[malloc_size_of(part)]
    list: Vec<u32>,
}

/// Derives the larger trait alone.
#[derive(SizeOfIncludingThis)]
struct Node {
    embedded: Embedded,
    next: Option<Box<Node>>,
}

#[derive(SizeOfIncludingThis)]
struct Generic<'t, T: Copy, const N: usize> {
    values: [Vec<T>; N],
    #[malloc_size_of(ignore = "borrowed")]
    _text: &'t str,
}

#[derive(SizeOfIncludingThis)]
enum Choice<T> {
    Nothing,
    One(T),
}

fn embedded() -> Embedded {
    Embedded { text: "x".repeat(100), list: Vec::with_capacity(5) }
}

fn node() -> Node {
    Node { embedded: embedded(), next: None }
}

fn including<P: SizeOfIncludingThis + OwnsBlock>(pointer: &P) -> usize {
    Traversal::new().run(|ops| pointer.size_of_including_this(ops))
}

fn excluding<T: ?Sized + SizeOfExcludingThis>(value: &T) -> usize {
    Traversal::new().run(|ops| value.size_of_excluding_this(ops))
}

#[test]
fn deriving_any_of_the_three_is_enough_to_measure() {
    assert_eq!(measure(&embedded()).bytes, 120);
    assert_eq!(measure(&embedded()).part("list"), 20);
    assert_eq!(measure(&vec![embedded()]).bytes, 120 + size_of::<Embedded>());
    let chain = Node { embedded: embedded(), next: Some(Box::new(node())) };
    assert_eq!(measure(&chain).bytes, 240 + size_of::<Node>());
    let generic = Generic { values: [vec![1_u16], vec![2, 3]], _text: "text" };
    assert_eq!(measure(&generic).bytes, 6);
    assert_eq!(measure(&Choice::<String>::Nothing).bytes, 0);
    assert_eq!(including(&Box::new(Choice::One(7_u64))), size_of::<Choice<u64>>());
}

#[test]
fn including_this_adds_the_block_of_every_owning_pointer() {
    let counts = 2 * size_of::<usize>();
    let size = size_of::<Node>();
    assert_eq!(excluding(&node()), 120);
    assert_eq!(including(&Box::new(node())), 120 + size);
    assert_eq!(including(&Rc::new(node())), 120 + size + counts);
    assert_eq!(including(&Arc::new(node())), 120 + size + counts);
    assert_eq!(including(&Box::pin(node())), 120 + size);
    assert_eq!(including(&Rc::pin(node())), 120 + size + counts);
    assert_eq!(including(&Arc::pin(node())), 120 + size + counts);
    // Types of std, and values of any size.
    assert_eq!(including(&Box::new("text".to_owned())), 4 + size_of::<String>());
    assert_eq!(including(&Box::<str>::from("text")), 4);
    assert_eq!(including(&Pin::new(Box::<[u8]>::from([1, 2, 3]))), 3);
    // A pointer's own storage is the pointer.
    let boxed = Box::new(node());
    assert_eq!(excluding(&boxed), including(&boxed));
    assert_eq!(excluding(&*boxed), 120);
}

#[test]
fn a_value_without_a_size_has_no_block() {
    #[derive(SizeOfIncludingThis)]
    struct Nothing;
    assert_eq!(including(&Box::new(Nothing)), 0);
}

#[test]
fn over_aligned_values_behind_counts_are_measured_from_their_start() {
    #[derive(SizeOfIncludingThis)]
    #[repr(align(64))]
    struct Aligned(u8);
    assert_eq!(including(&Box::new(Aligned(1))), 64);
    assert_eq!(including(&Arc::new(Aligned(2))), 128);
}

#[test]
fn a_trait_object_is_measured_by_the_type_of_its_value() {
    trait Shape: SizeOfIncludingThis {}
    impl Shape for Node {}
    let shape: Box<dyn Shape> = Box::new(node());
    assert_eq!(including(&shape), 120 + size_of::<Node>());
}

#[test]
fn a_traversal_counts_a_shared_block_once() {
    let first = Arc::new(node());
    let second = Arc::clone(&first);
    let traversal = Traversal::new();
    let both = traversal
        .run(|ops| (first.size_of_including_this(ops), second.size_of_including_this(ops)));
    assert_eq!(both, (120 + size_of::<Node>() + 2 * size_of::<usize>(), 0));
    assert_eq!(traversal.measure(&second), Measured::default());
    assert_eq!(Traversal::new().measure(&second).bytes, both.0);
}

#[test]
fn a_long_chain_does_not_overflow_the_stack() {
    #[derive(Default, SizeOfIncludingThis)]
    struct Long {
        next: Option<Box<Long>>,
    }
    impl Drop for Long {
        fn drop(&mut self) {
            while let Some(mut next) = self.next.take() {
                self.next = next.next.take();
            }
        }
    }
    let mut chain = Box::new(Long::default());
    for _ in 0..100_000 {
        chain = Box::new(Long { next: Some(chain) });
    }
    assert_eq!(including(&chain), 100_001 * size_of::<Long>());
}

#[test]
fn a_value_behind_a_raw_pointer_is_measured_by_its_contract() {
    struct Foreign(*const Node);
    impl MallocSizeOf for Foreign {
        fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
            // SAFETY: the pointer comes from a box, which the value owns.
            let node: &'a Node = unsafe { &*self.0 };
            // SAFETY: as above.
            unsafe { ops.add_including_this(node) };
        }
    }
    let node = Box::into_raw(Box::new(node()));
    let measured = measure(&Foreign(node));
    // SAFETY: from `into_raw`.
    drop(unsafe { Box::from_raw(node) });
    assert_eq!(measured.bytes, 120 + size_of::<Node>());
}

std::thread_local! {
    static STARTS: Cell<usize> = const { Cell::new(0) };
}

/// # Safety
///
/// None: it does not use the pointer.
unsafe fn thousand_each(start: *const c_void) -> usize {
    assert!(!start.is_null());
    STARTS.set(STARTS.get() + 1);
    1000
}

#[test]
fn the_callers_function_is_called_once_for_each_block() {
    // SAFETY: the function does not use the pointer.
    let traversal = unsafe { Traversal::with_malloc_size_of(thousand_each) };
    let chain = Box::new(Node { embedded: embedded(), next: Some(Box::new(node())) });
    // Two nodes, with a text and a list each.
    assert_eq!(traversal.run(|ops| chain.size_of_including_this(ops)), 6000);
    assert_eq!(STARTS.replace(0), 6);
    assert_eq!(traversal.run(|ops| (*chain).size_of_excluding_this(ops)), 5000);
    assert_eq!(STARTS.replace(0), 5);
    let measured = traversal.measure(&(String::new(), Vec::<u8>::new(), Box::new(())));
    assert_eq!((measured.bytes, STARTS.replace(0)), (0, 0));
    let shared = Arc::new(String::from("text"));
    assert_eq!(traversal.measure(&[shared.clone(), shared]).blocks, 2);
    assert_eq!(STARTS.replace(0), 2);
}

#[test]
fn blocks_without_a_known_start_are_computed() {
    // SAFETY: the function does not use the pointer.
    let traversal = unsafe { Traversal::with_malloc_size_of(thousand_each) };
    let map: std::collections::BTreeMap<u32, u32> = (0..100).map(|key| (key, key)).collect();
    let measured = traversal.measure(&map);
    assert_eq!((measured.bytes, measured.blocks), (measured.computed, 0));
    assert!(measured.computed > 800 && STARTS.replace(0) == 0, "{measured:?}");
}
