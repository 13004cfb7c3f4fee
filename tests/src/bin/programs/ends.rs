//! Programs that end elsewhere than in `main`.

use std::path::Path;
use std::process;
use std::thread;

use crate::Failure;
use crate::planted::{plant, save};

pub(crate) fn exit_nested(path: &Path) -> Result<(), Failure> {
    let planted = plant(6);
    save(path)?;
    nested(planted, 20)
}

#[inline(never)]
#[expect(clippy::exit, reason = "what is tested")]
fn nested(planted: Vec<Vec<u8>>, depth: u32) -> ! {
    if depth == 0 {
        drop(std::hint::black_box(planted.clone()));
        process::exit(42);
    }
    nested(std::hint::black_box(planted), depth - 1)
}

/// Ends the program on another thread while this one allocates.
#[expect(clippy::exit, reason = "what is tested")]
pub(crate) fn exit_on_thread(path: &Path) -> Result<(), Failure> {
    let planted = plant(6);
    save(path)?;
    thread::spawn(|| process::exit(43));
    loop {
        drop(std::hint::black_box(planted.clone()));
    }
}

pub(crate) fn abort(path: &Path) -> Result<(), Failure> {
    let planted = plant(6);
    save(path)?;
    drop(std::hint::black_box(planted));
    process::abort()
}

/// Plants blocks without a dump.
pub(crate) fn no_dump(_path: &Path) -> Result<(), Failure> {
    drop(std::hint::black_box(plant(6)));
    Ok(())
}
