//! A language runtime: a JavaScript engine that keeps a changing set of objects.

use boa_engine::{Context, Source};
use foreign::Counted;

dmd::global_allocator!((Counted): Counted);

/// Fills a table of objects, then replaces a part of them in each round.
const SCRIPT: &str = "
    globalThis.table ??= new Map();
    for (let i = 0; i < 3000; i++) {
        const key = 'key' + (round * 977 + i * 13) % 20000;
        table.set(key, { key, list: [i, round, 'text ' + i], nested: { at: round, more: [1, 2, 3] } });
    }
    [...table.values()].reduce((sum, value) => sum + value.list.length, 0);
";

fn main() -> std::io::Result<()> {
    let mut context = Context::default();
    foreign::work(|round| {
        let script = format!("globalThis.round = {round};\n{SCRIPT}");
        if let Err(error) = context.eval(Source::from_bytes(&script)) {
            panic!("the script fails: {error}");
        }
    })
}
