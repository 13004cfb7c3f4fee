//! A language runtime: a JavaScript engine whose script keeps a table of objects.

use std::io;

use boa_engine::{Context, Source};
use foreign::Counted;

dmd::global_allocator!((Counted): Counted);

/// Fills a table with the customers and orders of a shop, as a script of a server or a game does.
const SCRIPT: &str = "
    globalThis.customers = new Map();
    for (let number = 0; number < 20000; number++) {
        const key = 'customer ' + number;
        customers.set(key, {
            key,
            region: number % 7,
            orders: [number, number * 3],
            address: { street: 'street ' + (number % 100), city: 'city ' + (number % 10) },
        });
    }
";

/// Sums up what the table contains.
const SUM: &str = "
    [...customers.values()].reduce(
        (sum, one) => (sum * 31 + one.key.length + one.region + one.orders[1]) % 1000003, 0);
";

fn main() -> io::Result<()> {
    let mut context = Context::default();
    let mut eval = |script: &str| {
        context
            .eval(Source::from_bytes(script))
            .map_err(|error| io::Error::other(error.to_string()))
    };
    eval(SCRIPT)?;
    foreign::finish(|| {
        let sum = eval(SUM).ok().and_then(|sum| sum.as_number());
        sum.map_or(0, f64::to_bits)
    })
}
