//! A component of a compiler: a cache of parsed SQL, as a proxy or a planner keeps it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::{Mutex, PoisonError};

use foreign::Counted;
use sqlparser::ast::Statement;
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

dmd::global_allocator!((Counted): Counted);

/// The parsed statements by their text.
static CACHE: Mutex<Option<HashMap<String, Vec<Statement>>>> = Mutex::new(None);

const STATEMENTS: usize = 5000;

/// Returns a statement, another one for each number: queries, sums, insertions and updates.
fn statement(number: usize) -> String {
    const TABLES: [&str; 5] = ["orders", "customers", "shop.items", "stock", "payments"];
    let (first, second) = (TABLES[number % 5], TABLES[number / 5 % 5]);
    match number % 4 {
        0 => format!(
            "SELECT o.id, o.total, c.name FROM {first} AS o JOIN {second} AS c ON o.customer = c.id \
             WHERE o.total > {number} AND c.region = 'r{number}' ORDER BY o.total DESC LIMIT 10"
        ),
        1 => format!(
            "SELECT count(*), sum(price) FROM {first} WHERE day BETWEEN '2024-01-01' AND \
             '2024-12-{number}' GROUP BY region HAVING count(*) > {number}"
        ),
        2 => format!(
            "INSERT INTO {first} (id, name, price, day) VALUES ({number}, 'name {number}', \
             {number}.5, now()), ({number}, 'other {number}', 2.5, now())"
        ),
        _ => format!(
            "UPDATE {first} SET price = price * 1.1, day = now() WHERE id IN (SELECT id FROM \
             {second} WHERE seller = {number}) AND price < {number}"
        ),
    }
}

fn main() -> io::Result<()> {
    let mut cache = HashMap::new();
    for number in 0..STATEMENTS {
        let text = statement(number);
        let parsed = Parser::parse_sql(&GenericDialect {}, &text).map_err(io::Error::other)?;
        cache.insert(text, parsed);
    }
    *CACHE.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache);
    foreign::finish(|| {
        let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        cache.iter().flatten().fold(0, |sum, (_, parsed)| sum ^ hash(parsed))
    })
}

/// Returns a hash of the statements' text.
fn hash(statements: &[Statement]) -> u64 {
    let mut hasher = DefaultHasher::new();
    statements.iter().for_each(|statement| statement.to_string().hash(&mut hasher));
    hasher.finish()
}
