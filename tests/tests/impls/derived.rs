//! Tests types with a derived implementation, wide and deep.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use dmd::assert_fully_reported;
use memreport::MallocSizeOf;

use super::text;

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

/// A list through shared cells.
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
