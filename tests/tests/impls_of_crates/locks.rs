//! Tests locks and cells.

use dmd::assert_fully_reported;
use memreport::measure;
use once_cell::race::OnceBox;

use super::{owns_blocks, text};

#[test]
fn cells_that_are_filled_once() {
    use once_cell::{sync, unsync};
    assert_fully_reported!((sync::OnceCell::<String>::new(), unsync::OnceCell::<String>::new()));
    assert_fully_reported!((sync::OnceCell::with_value(text(9)), unsync::OnceCell::from(text(9))));
    let lazy = sync::Lazy::<String>::new(|| text(40));
    owns_blocks(&lazy, 0);
    assert_eq!(lazy.len(), 40);
    assert_fully_reported!(lazy);
    let lazy = unsync::Lazy::<String>::new(|| text(40));
    assert_eq!(lazy.len(), 40);
    assert_fully_reported!(lazy);
    assert_fully_reported!(OnceBox::<String>::new());
    assert_fully_reported!(OnceBox::with_value(Box::new(text(9))));
    assert_fully_reported!(tokio::sync::OnceCell::new_with(Some(text(9))));
}

#[test]
fn locks_are_tried() {
    let value = (
        parking_lot::Mutex::new(text(10)),
        parking_lot::RwLock::new(text(20)),
        tokio::sync::Mutex::new(text(30)),
        tokio::sync::RwLock::new(text(40)),
    );
    {
        let _held = (value.0.lock(), value.1.write());
        let _held_too = (value.2.try_lock().unwrap(), value.3.try_write().unwrap());
        let measured = measure(&value);
        assert_eq!((measured.blocks, measured.busy), (0, 4));
    }
    {
        let _lent = (value.1.read(), value.3.try_read().unwrap());
        owns_blocks(&value, 4);
    }
    assert_fully_reported!(value);
    owns_blocks(&(parking_lot::Condvar::new(), tokio::sync::Semaphore::new(3)), 0);
}

/// A chain of locks, dropped without recursion.
#[derive(Default, memreport::MallocSizeOf)]
struct Chain(parking_lot::Mutex<Option<Box<Chain>>>);

impl Drop for Chain {
    fn drop(&mut self) {
        let mut next = self.0.get_mut().take();
        while let Some(mut node) = next {
            next = node.0.get_mut().take();
        }
    }
}

#[test]
fn a_chain_of_locks_fits_any_stack() {
    let test = || {
        let mut chain = Chain::default();
        for _ in 0..20_000 {
            chain = Chain(parking_lot::Mutex::new(Some(Box::new(chain))));
        }
        assert_fully_reported!(chain);
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(test);
    thread.expect("threads can be had").join().expect("the stack is enough");
}
