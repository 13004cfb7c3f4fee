//! The programs that are measured, and the work that each does.

use serde_json::json;

use crate::foreign::published::Published;

/// A program and its work.
pub(super) struct Work {
    pub(super) published: Published,
    /// The arguments before the input's file.
    pub(super) args: &'static [&'static str],
    /// Returns an input with this many tenths of the work.
    pub(super) input: fn(u32) -> String,
}

pub(super) const WORKS: [Work; 2] = [
    Work {
        published: Published {
            package: "jaq",
            version: "3.1.2",
            program: "jaq",
            main: "src/main.rs",
            begin: None,
            features: &[],
        },
        args: &[FILTER],
        input: customers,
    },
    Work {
        published: Published {
            package: "rhai",
            version: "1.27.0",
            program: "rhai-run",
            main: "src/bin/rhai-run.rs",
            begin: None,
            features: &["std", "ahash/runtime-rng"],
        },
        args: &[],
        input: script,
    },
];

/// Groups customers by their city, and adds up their orders.
const FILTER: &str = "group_by(.city) | map({ city: .[0].city, count: length, \
    total: (map(.orders[].amount) | add), names: (map(.name) | sort | .[:5]), \
    tags: (map(.tags[]) | unique) })";

/// Returns a JSON list of customers with their orders.
fn customers(tenths: u32) -> String {
    let customers: Vec<_> = (0..tenths * 12_000)
        .map(|number| {
            let orders: Vec<_> = (0..number % 7)
                .map(|order| json!({ "id": number * 7 + order, "amount": order * 13 % 101 }))
                .collect();
            json!({
                "name": format!("customer {}", number.wrapping_mul(2_654_435_761) % 1_000_003),
                "city": format!("city {}", number % 83),
                "tags": [format!("tag {}", number % 11), format!("tag {}", number % 17)],
                "orders": orders,
            })
        })
        .collect();
    serde_json::Value::from(customers).to_string()
}

/// Returns a script that keeps a changing table of objects, and sums up what it contains.
fn script(tenths: u32) -> String {
    format!(
        r##"
let table = #{{}};
let sum = 0;
for round in 0..{rounds} {{
    for i in 0..3000 {{
        let key = "key" + ((round * 977 + i * 13) % 20000);
        table[key] = #{{ key: key, list: [i, round, "text number " + i], nested: #{{ at: round }} }};
    }}
    for value in table.values() {{
        sum += value.list.len() + value.key.len();
    }}
}}
print(sum);
"##,
        rounds = tenths * 5,
    )
}
