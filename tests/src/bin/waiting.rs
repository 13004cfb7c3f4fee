//! A program whose heap is held by variables of functions and by thread-locals, of two threads. It
//! saves a report to its argument while both are there.

use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

dmd::global_allocator!();

/// Boxes, so that there is a block for each.
type Boxes = Vec<Box<[u8; 1000]>>;

thread_local! {
    static RECENT: RefCell<Boxes> = const { RefCell::new(Vec::new()) };
}

#[inline(never)]
fn work(ready: &Sender<()>, end: &Receiver<()>) -> usize {
    RECENT.with_borrow_mut(|recent| recent.extend((0..100).map(|_| Box::new([1; 1000]))));
    let buffer: Vec<Box<u64>> = (0..10_000).map(Box::new).collect();
    let _ = ready.send(());
    let _ = end.recv();
    buffer.len()
}

#[inline(never)]
fn serve(path: &Path) -> std::io::Result<usize> {
    RECENT.with_borrow_mut(|recent| recent.push(Box::new([2; 1000])));
    let orders: Vec<String> = (0..1000).map(|_| "an order with a long name".repeat(4)).collect();
    memreport::snapshot().save(path)?;
    Ok(orders.len())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: waiting FILE")?;
    let ((ending, end), (ready, is_ready)) = (channel(), channel());
    let worker = std::thread::Builder::new().name("worker".to_owned());
    let worker = worker.spawn(move || work(&ready, &end))?;
    is_ready.recv()?;
    // Until the thread waits.
    std::thread::sleep(Duration::from_millis(300));
    black_box(serve(path.as_ref())?);
    drop(ending);
    worker.join().map_err(|_| "the worker panicked")?;
    Ok(())
}
