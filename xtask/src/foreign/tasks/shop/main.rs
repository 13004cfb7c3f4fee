//! A small service with a known heap: a catalogue, a feed that is parsed, an audit trail that
//! grows, sessions that are leaked, and prices that are formatted and dropped.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

struct Product {
    name: String,
    price: u32,
}

#[allow(dead_code)]
struct AuditEntry {
    who: u64,
    what: [u64; 15],
}

#[allow(dead_code)]
struct Session {
    user: u64,
    token: [u8; 120],
}

static CATALOGUE: Mutex<Option<HashMap<u32, Product>>> = Mutex::new(None);
static AUDIT: Mutex<Vec<Box<AuditEntry>>> = Mutex::new(Vec::new());

#[inline(never)]
fn load_catalogue() {
    let product = |n: u32| (n, Product { name: format!("product number {n}"), price: n });
    *CATALOGUE.lock().unwrap() = Some((0..100_000).map(product).collect());
}

#[inline(never)]
fn parse_feed() -> usize {
    let feed: Vec<Vec<u8>> = (0..64).map(|n| vec![n; 1 << 20]).collect();
    black_box(&feed).iter().map(Vec::len).sum()
}

#[inline(never)]
fn audit(rounds: u64) {
    for who in 0..rounds {
        AUDIT.lock().unwrap().push(Box::new(AuditEntry { who, what: [who; 15] }));
    }
}

#[inline(never)]
fn open_session(user: u64) {
    std::mem::forget(black_box(Box::new(Session { user, token: [user as u8; 120] })));
}

#[inline(never)]
fn print_prices() -> usize {
    let products = CATALOGUE.lock().unwrap();
    let text = |product: &Product| black_box(format!("{}: {}", product.name, product.price)).len();
    products.iter().flat_map(HashMap::values).map(text).sum()
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let begin = Instant::now();
    load_catalogue();
    let mut sum = parse_feed();
    for user in 0..1000 {
        open_session(user);
    }
    audit(20_000);
    for _ in 0..10 {
        sum += print_prices();
    }
    println!("open");
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        audit(2_000);
        open_session(0);
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{sum}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_its_price() {
        let product = Product { name: "tea".to_owned(), price: 3 };
        assert_eq!(format!("{}: {}", product.name, product.price), "tea: 3");
    }

    #[test]
    fn a_customer_comes_in() {
        open_session(7);
    }
}
