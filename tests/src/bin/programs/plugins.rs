//! Plugins, loaded while the program runs and unloaded again: `argv[3]` is the file.

use std::cell::RefCell;
use std::path::Path;

use crate::Failure;
use crate::library::loaded;
use crate::planted::{plant, save};

thread_local! {
    static MADE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Called by the plugin, so that its frames are on the stack of a block.
extern "C" fn make_one() {
    let _ = MADE.try_with(|made| made.borrow_mut().extend(plant(1)));
}

/// Loaded, called and unloaded 20 times. The plugin's own blocks are not this tracker's.
pub(crate) fn plain(path: &Path) -> Result<(), Failure> {
    let file = file()?;
    for _ in 0..20 {
        if loaded(&file, |work| work(50, make_one))? != 50 {
            return Err("the plugin lost blocks".into());
        }
    }
    save(path)
}

/// The plugin's tracker must be asleep if this one is awake, and is awake if it is alone.
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
