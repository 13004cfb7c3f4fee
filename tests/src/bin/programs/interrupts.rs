//! A storm of signals, which also interrupt the hooks.
#![expect(unsafe_code, reason = "sets a handler and a timer")]

use std::path::Path;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::Failure;
use crate::planted::{plant, save};

static COUNT: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_signal: libc::c_int) {
    COUNT.fetch_add(1, Relaxed);
}

/// Allocates until enough signals came, at least a hundred thousand times.
pub(crate) fn storm(path: &Path) -> Result<(), Failure> {
    let action = handler as *const () as libc::sighandler_t;
    // SAFETY: the handler only counts.
    if unsafe { libc::signal(libc::SIGPROF, action) } == libc::SIG_ERR {
        return Err(std::io::Error::last_os_error().into());
    }
    set_timer(100)?;
    let kept = plant(6);
    let mut rounds = 0;
    while COUNT.load(Relaxed) < 100 || rounds < 1000 {
        let mut words: Vec<String> = (0..100).map(|number| format!("word {number}")).collect();
        words.truncate(50);
        words.shrink_to_fit();
        drop(std::hint::black_box(words));
        rounds += 1;
    }
    save(path)?;
    set_timer(0)?;
    drop(kept);
    Ok(())
}

/// Sets a timer that sends a signal per this many microseconds of processor time.
fn set_timer(microseconds: libc::suseconds_t) -> Result<(), Failure> {
    let period = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: period, it_value: period };
    // SAFETY: a valid timer; the old one is not requested.
    let result = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}
