//! A program with an open memreport socket that allocates in a scope and on a thread of its own.

use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use memreport::serve::Server;

/// Serves in this folder until the standard input ends.
pub(crate) fn run(folder: &str) -> std::io::Result<()> {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let serving = Server::default().folder(folder).start()?;
    let worker = thread::Builder::new().name("worker".into()).spawn(|| {
        while !IS_OVER.load(Relaxed) {
            work();
            thread::sleep(Duration::from_millis(5));
        }
    })?;
    std::io::Write::write_all(
        &mut std::io::stdout(),
        format!("{}\n", serving.socket().display()).as_bytes(),
    )?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    IS_OVER.store(true, Relaxed);
    worker.join().map_err(|_| std::io::Error::other("the worker panicked"))
}

#[inline(never)]
fn work() {
    memreport::scope!("request");
    let mut words: Vec<String> = Vec::with_capacity(181);
    words.push(String::from("a word that is the program's"));
    drop(std::hint::black_box(words));
}
