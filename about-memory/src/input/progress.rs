//! Shows on a terminal how far a long step is, if it takes over a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time after which a step is shown.
const DELAY: Duration = Duration::from_secs(1);

/// The interval at which it is drawn.
const TICK: Duration = Duration::from_millis(100);

/// True if standard error is a terminal and the user wants progress. False in tests.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// Has later steps shown on standard error.
pub(crate) fn enable() {
    // The value alone matters, so nothing is ordered by it.
    IS_WANTED.store(true, Relaxed);
}

/// Has later steps not shown: something else draws on the terminal.
#[cfg(feature = "top")]
pub(crate) fn disable() {
    IS_WANTED.store(false, Relaxed);
}

/// A step that is shown while this value lives.
#[derive(Debug)]
pub(crate) struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    is_over: Mutex<bool>,
    ended: Condvar,
    /// The position in bytes.
    position: AtomicU64,
    words: Mutex<String>,
}

impl Progress {
    /// Begins a step; with a length in bytes, its share is shown.
    pub(crate) fn start(words: impl Into<String>, length: Option<u64>) -> Self {
        let shared = Arc::new(Shared {
            is_over: Mutex::new(false),
            ended: Condvar::new(),
            position: AtomicU64::new(0),
            words: Mutex::new(words.into()),
        });
        let of_thread = Arc::clone(&shared);
        // Without a thread, nothing is shown.
        let thread = IS_WANTED
            .load(Relaxed)
            .then(|| thread::Builder::new().spawn(move || show(&of_thread, length)).ok())
            .flatten();
        Progress { shared, thread }
    }

    /// Returns whether a terminal shows it, or will.
    pub(crate) fn is_shown(&self) -> bool {
        self.thread.is_some()
    }

    /// Changes the words.
    pub(crate) fn set_words(&self, words: String) {
        *self.shared.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Returns a reader that moves the position.
    pub(crate) fn reader<R: Read>(&self, inner: R) -> Counted<R> {
        Counted { inner, shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.shared.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked shows nothing more.
            let _ = thread.join();
        }
    }
}

/// A reader that moves the position of a step.
#[derive(Debug)]
pub(crate) struct Counted<R> {
    inner: R,
    shared: Arc<Shared>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.shared.position.fetch_add(length as u64, Relaxed);
        Ok(length)
    }
}

/// Draws the step until it is over, from a second after its begin.
fn show(shared: &Shared, length: Option<u64>) {
    let began = Instant::now();
    let mut bar: Option<ProgressBar> = None;
    let mut is_over = shared.is_over.lock().unwrap_or_else(PoisonError::into_inner);
    while !*is_over {
        let wait = if bar.is_some() { TICK } else { DELAY.saturating_sub(began.elapsed()) };
        let waited = shared.ended.wait_timeout(is_over, wait);
        is_over = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *is_over || began.elapsed() < DELAY {
            continue;
        }
        let bar = bar.get_or_insert_with(|| new_bar(length, began));
        let words = shared.words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        bar.set_message(crate::render::terminal_text::line(&words).into_owned());
        bar.set_position(shared.position.load(Relaxed));
        bar.tick();
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn new_bar(length: Option<u64>, began: Instant) -> ProgressBar {
    let template = match length {
        Some(_) => "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {elapsed}",
        None => "{spinner} {msg}, {elapsed}",
    };
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .progress_chars("██░");
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.with_style(style).with_elapsed(began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_counts_what_is_read_and_shows_nothing_in_a_test() {
        let step = Progress::start("reading", Some(5));
        let mut text = String::new();
        step.reader(&b"12345"[..]).read_to_string(&mut text).unwrap();
        assert_eq!((step.shared.position.load(Relaxed), text.as_str()), (5, "12345"));
        assert!(step.thread.is_none());
    }
}
