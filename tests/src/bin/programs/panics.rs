//! Panics: out of `main`, caught, and of a thread.

use std::panic::catch_unwind;
use std::path::Path;
use std::thread;

use crate::Failure;
use crate::planted::{plant, save};

/// A guard that saves while the stack is unwound.
struct SavesOnDrop<'p>(&'p Path);

impl Drop for SavesOnDrop<'_> {
    fn drop(&mut self) {
        // If it fails, the test finds no file.
        let _ = save(self.0);
    }
}

pub(crate) fn unwinds(path: &Path) -> Result<(), Failure> {
    let planted = plant(6);
    let _saves = SavesOnDrop(path);
    drop(std::hint::black_box(plant(2)));
    panic!("with {} blocks", planted.len());
}

pub(crate) fn caught(path: &Path) -> Result<(), Failure> {
    let kept = plant(6);
    for _ in 0..100 {
        let result = catch_unwind(|| {
            let lost = plant(3);
            assert!(lost.is_empty(), "of course not");
        });
        if result.is_ok() {
            return Err("nothing panicked".into());
        }
    }
    save(path)?;
    drop(kept);
    Ok(())
}

pub(crate) fn of_a_thread(path: &Path) -> Result<(), Failure> {
    let kept = plant(6);
    let thread = thread::spawn(|| {
        let lost = plant(3);
        assert!(lost.is_empty(), "of course not");
    });
    if thread.join().is_ok() {
        return Err("nothing panicked".into());
    }
    save(path)?;
    drop(kept);
    Ok(())
}
