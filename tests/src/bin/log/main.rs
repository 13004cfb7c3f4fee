//! Checks of single allocations: their times, sites and threads.

mod ages;
mod observed;
mod limits;
mod served;
mod stress;

dmd::global_allocator!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ages", path] => Ok(ages::run(path)?),
        ["served", folder] => Ok(served::run(folder)?),
        ["stress", seconds] => stress::run(seconds.parse()?),
        ["log"] => observed::log(),
        ["sites"] => observed::sites(),
        ["names"] => observed::names(),
        ["limits"] => limits::run(),
        ["probabilities"] => observed::probabilities(),
        ["several"] => observed::several(),
        _ => Err("which part?".into()),
    }
}
