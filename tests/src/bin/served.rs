//! A program with an open memreport socket until its standard input ends; its arguments add more
//! work.
#![expect(unsafe_code, reason = "forks")]

use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use memreport::serve::{Part, Server, Threshold};

dmd::global_allocator!();

static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());
memreport::reporter!("explicit/served/words", WORDS, "The words.");

static CACHE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
memreport::reporter!("explicit/served/cache", CACHE, "What can be done without.");

/// While this is set, one reporter does not return.
static IS_STUCK: AtomicBool = AtomicBool::new(false);
memreport::reporter!(stuck);

fn stuck(reports: &mut memreport::Reports<'_>) {
    while IS_STUCK.load(Relaxed) {
        thread::sleep(Duration::from_millis(1));
    }
    reports.add(memreport::Report::count("served/unstuck", 1, "The reporter came back."));
}

memreport::reporter!(visited);

fn visited(reports: &mut memreport::Reports<'_>) {
    let page = if reports.anonymize() { "<anonymized>" } else { "private-word" };
    reports.add(memreport::Report::count(format!("visited/{page}"), 1, "A page."));
}

fn main() -> std::io::Result<()> {
    WORDS.lock().expect("nobody panics").extend((0..1000).map(|number| format!("word {number}")));
    *CACHE.lock().expect("nobody panics") = vec![1; 1_000_000];
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(socket) = words.iter().find_map(|word| word.strip_prefix("ask=")) {
        return ask(socket);
    }
    let has = |word: &str| words.iter().any(|given| given == word);
    memreport::on_minimize(|| {
        if let Ok(mut cache) = CACHE.try_lock() {
            *cache = Vec::new();
        }
    })
    .forever();
    let serving = server(&words).start()?;
    if let Err(error) = memreport::serve() {
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "one server is enough");
    }
    let stop = Arc::new(AtomicBool::new(false));
    let busy = has("busy").then(|| (0..2).map(|_| thread::spawn(work(&stop))).collect::<Vec<_>>());
    // Locks may be held by threads that do not exist in the child, so it waits for none.
    let _locked = has("locked").then(|| WORDS.lock());
    // SAFETY: the child only sleeps and ends.
    if has("fork") && unsafe { libc::fork() } == 0 {
        // The child outlives its parent, and must not keep clients of the parent waiting.
        thread::sleep(Duration::from_secs(60));
        std::process::exit(0);
    }
    println(&serving.socket().display().to_string())?;
    let mut step = [0; 1];
    let mut grown = Vec::new();
    while std::io::stdin().read(&mut step)? == 1 {
        grown.push(vec![1_u8; 10 << 20]);
    }
    stop.store(true, Relaxed);
    for thread in busy.into_iter().flatten() {
        thread.join().expect("it does not panic");
    }
    if has("stop") {
        serving.stop();
    }
    Ok(())
}

/// Returns the server that these arguments describe.
fn server(words: &[String]) -> Server {
    let has = |word: &str| words.iter().any(|given| given == word);
    let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name));
    let mut server =
        Server::default().command("stick", "Has a reporter hang, or go on.", |request| {
            IS_STUCK.store(request.is_yes("on"), Relaxed);
            Ok(vec![Part { name: "stuck".into(), bytes: b"so be it".to_vec() }])
        });
    server = server.command("tighten", "Leaves the program 8 MiB of addresses.", |_| {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = pages.split(' ').next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
        let limit = pages * 4096 + (8 << 20);
        let limits = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: reads the limits.
        let is_set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limits) } == 0;
        Ok(vec![Part { name: "tight".into(), bytes: is_set.to_string().into_bytes() }])
    });
    if let Some(name) = value("name=") {
        server = server.name(name);
    }
    if let Some(folder) = value("save=") {
        server = server.save_into(folder).save_at_most(2, 50).save_on_signal(libc::SIGUSR2);
        if has("steps") {
            server = server.save_at(Threshold::ResidentStep(8 << 20)).cooldown(Duration::ZERO);
        }
    }
    if let Some(folder) = value("every=") {
        server = server.save_every(Duration::from_millis(50), 3, folder);
    }
    if has("history") {
        server = server.keep_every(Duration::from_millis(50), 3);
    }
    if let Some(folder) = value("folder=") {
        server = server.folder(folder);
    }
    server
}

/// Allocates, keeps the blocks for a while, and frees them, under the locks that reporters try.
fn work(stop: &Arc<AtomicBool>) -> impl FnOnce() + Send + 'static {
    let stop = Arc::clone(stop);
    move || {
        let mut number = 0_usize;
        while !stop.load(Relaxed) {
            number += 1;
            let mut words = WORDS.lock().expect("nobody panics");
            if words.len() > 5000 {
                words.truncate(1000);
            }
            words.push(format!("word number {number}"));
            drop(words);
            std::hint::black_box(vec![0_u8; number % 3000]);
        }
    }
}

/// Connects to another program as the user of this one.
fn ask(socket: &str) -> std::io::Result<()> {
    let mut stream = std::os::unix::net::UnixStream::connect(socket)?;
    std::io::Write::write_all(&mut stream, b"{\"command\":\"report\"}\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    println(&String::from_utf8_lossy(&answer))
}

/// Prints one line and flushes it.
fn println(line: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}
