//! Plugins, loaded and unloaded while the program runs: `argv[3]` is the file.
#![expect(unsafe_code, reason = "sets a variable of the environment")]

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

use crate::Failure;
use crate::library::loaded;
use crate::planted::{leave, plant, save};

thread_local! {
    static MADE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Makes a block when the plugin calls it, so that the plugin's frames are on its stack.
extern "C" fn make_one() {
    let _ = MADE.try_with(|made| made.borrow_mut().extend(plant(1)));
}

/// Loads, calls and unloads the plugin 20 times. This tracker does not see the plugin's own blocks.
pub(crate) fn plain(path: &Path) -> Result<(), Failure> {
    let file = file()?;
    for _ in 0..20 {
        if loaded(&file, |work| work(50, make_one))? != 50 {
            return Err("the plugin lost blocks".into());
        }
    }
    save(path)
}

/// Has plugins call this function when they are loaded. No other thread may run yet.
fn call_at_load(function: extern "C" fn()) {
    // SAFETY: the program has one thread.
    unsafe { std::env::set_var("CALL_AT_LOAD", (function as usize).to_string()) };
}

/// Loads the plugin 20 times. Its initialiser takes a snapshot, under the linker's lock, while
/// another thread takes snapshots, too.
pub(crate) fn snapshot_at_load(path: &Path) -> Result<(), Failure> {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn take() {
        drop(memreport::snapshot());
        TAKEN.fetch_add(1, Relaxed);
    }

    let file = file()?;
    call_at_load(take);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                drop(memreport::snapshot());
            }
        });
        // Its function, not called here, would keep the library loaded until the thread ends.
        let loads = (0..20).try_for_each(|_| loaded(&file, |_| 0).map(drop));
        is_done.store(true, Relaxed);
        loads
    })?;
    if TAKEN.load(Relaxed) != 20 {
        return Err("the plugin's initialiser was not called at each loading".into());
    }
    leave(path)
}

/// Loads a plugin whose tracker must be asleep if this one is awake, and awake if it is alone.
pub(crate) fn second_tracker(path: &Path) -> Result<(), Failure> {
    let is_awake = loaded(&file()?, |work| work(50, make_one))?;
    if is_awake != 0 {
        return Err("the second tracker is awake too".into());
    }
    save(path)
}

fn file() -> Result<String, Failure> {
    Ok(std::env::args().nth(3).ok_or("which plugin?")?)
}
