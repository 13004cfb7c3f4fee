//! A program without a tracker whose heap is held by variables of functions, by thread-locals and
//! by a static. It prints a line when all is there, and ends with its input.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};

struct Cart {
    items: Vec<String>,
}

struct Shop {
    carts: BTreeMap<u32, Cart>,
    name: String,
}

thread_local! {
    static RECENT: RefCell<Vec<Box<[u8; 1000]>>> = const { RefCell::new(Vec::new()) };
}

static ORDERS: Mutex<Vec<[u64; 100]>> = Mutex::new(Vec::new());

#[inline(never)]
fn serve(shop: &mut Shop, log: Vec<String>) -> usize {
    for number in 0..1000 {
        let items = (0..5).map(|_| "an item with a long name".repeat(2)).collect();
        shop.carts.insert(number, Cart { items });
    }
    wait();
    log.len() + shop.carts.values().map(|cart| cart.items.len()).sum::<usize>()
}

#[inline(never)]
fn wait() {
    println!("ready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("it is a pipe");
}

fn work(other: &[u64]) -> usize {
    RECENT.with_borrow_mut(|recent| recent.extend((0..100).map(|_| Box::new([1; 1000]))));
    let buffer: Vec<Box<u64>> = (0..10_000).map(Box::new).collect();
    std::thread::park();
    buffer.len() + other.len()
}

fn main() {
    ORDERS.lock().expect("no thread panics").extend((0..100).map(|_| [1; 100]));
    let shared = Arc::new(vec![7_u64; 100_000]);
    let other = Arc::clone(&shared);
    let worker = std::thread::Builder::new().name("worker".to_owned());
    let worker = worker.spawn(move || work(&other)).expect("a thread");
    // The thread must have come to its end.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut shop = Shop { carts: BTreeMap::new(), name: "x".repeat(2000) };
    let log = (0..1000).map(|_| "line of the log ".repeat(2)).collect();
    let served = serve(&mut shop, log);
    worker.thread().unpark();
    let worked = worker.join().expect("it does not panic");
    println!("{served} {worked} {} {}", shop.name.len(), shared.len());
}
