//! What single allocations are asked: when, where, by whom.

mod ages;

dmd::global_allocator!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ages", path] => Ok(ages::run(path)?),
        _ => Err("which part?".into()),
    }
}
