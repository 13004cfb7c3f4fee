//! A program without DMD that loads the plugin in `argv[1]` and prints its result.

#[path = "programs/library.rs"]
mod library;

use std::io::{self, Write};

type Failure = Box<dyn std::error::Error + Send + Sync>;

extern "C" fn nothing() {}

fn main() -> Result<(), Failure> {
    let file = std::env::args().nth(1).ok_or("which plugin?")?;
    // A thread that outlives the plugin that it has called.
    let (path, thread) = (file.clone(), std::thread::Builder::new());
    let thread = thread.spawn(move || library::loaded(&path, |work| work(0, nothing)))?;
    thread.join().map_err(|_| "the thread panicked")??;
    let answer = library::loaded(&file, |work| work(50, nothing))?;
    Ok(writeln!(io::stdout(), "{answer}")?)
}
