//! Plugins, loaded and unloaded while the program runs: `argv[3]` is the file.

use std::cell::RefCell;
use std::path::Path;

use crate::Failure;
use crate::library::loaded;
use crate::planted::{plant, save};

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
