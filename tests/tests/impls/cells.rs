//! Tests cells and locks.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::{Mutex, OnceLock, RwLock};

use dmd::assert_fully_reported;
use memreport::{MallocSizeOf, measure};

use super::{owns_blocks, text, texts};

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
fn lazy_values() {
    use std::cell::LazyCell;
    use std::sync::LazyLock;
    let lazy = (LazyCell::new(|| text(40)), LazyLock::<String>::new(|| text(50)));
    owns_blocks(&lazy, 0);
    assert_eq!((lazy.0.len(), lazy.1.len()), (40, 50));
    owns_blocks(&lazy, 2);
    assert_fully_reported!(lazy);
    static LAZY: LazyLock<Vec<u8>> = LazyLock::new(|| vec![1; 100]);
    owns_blocks(&LAZY, 0);
    assert_eq!(LAZY.len(), 100);
    owns_blocks(&LAZY, 1);
}

#[derive(MallocSizeOf)]
struct Parser {
    #[malloc_size_of(with = memreport::in_cell)]
    spare: Cell<Vec<String>>,
    depth: Cell<usize>,
}

#[test]
fn what_is_taken_out_of_a_cell_goes_back() {
    let parser = Parser { spare: Cell::new(texts(10).collect()), depth: Cell::new(3) };
    owns_blocks(&parser, 10);
    let spare = parser.spare.take();
    assert_eq!((spare.len(), parser.depth.get()), (10, 3));
    parser.spare.set(spare);
    assert_fully_reported!(parser);

    #[derive(Default)]
    struct PanicsOnce(bool);
    impl MallocSizeOf for PanicsOnce {
        fn add_size_of_excluding_this<'a>(&'a self, _ops: &memreport::Ops<'a>) {
            assert!(!self.0, "cannot be measured");
        }
    }
    #[derive(MallocSizeOf)]
    struct Holds(#[malloc_size_of(with = memreport::in_cell)] Cell<PanicsOnce>);
    let holds = Holds(Cell::new(PanicsOnce(true)));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| measure(&holds))).unwrap_err();
    assert!(holds.0.take().0, "it is back");
}
