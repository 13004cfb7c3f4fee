//! Programs that fork without `exec`, and programs that replace themselves.
#![expect(unsafe_code, reason = "forks")]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use crate::Failure;
use crate::planted::{plant, save};

/// Forks while quiet: parent and child both continue with the inherited blocks and more of their
/// own.
pub(crate) fn quiet(path: &Path) -> Result<(), Failure> {
    let both = plant(5);
    forked(path)?;
    let mine = plant(3);
    save(path)?;
    drop((both, mine));
    Ok(())
}

/// Forks 50 times while other threads allocate. The last child leaves the dump.
pub(crate) fn busy(path: &Path) -> Result<(), Failure> {
    let stop = AtomicBool::new(false);
    let both = plant(5);
    let result = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    drop(std::hint::black_box(vec![vec![1_u8; 100]; 100]));
                }
            });
        }
        let result = (0..50).try_for_each(|_| forked(path));
        stop.store(true, Relaxed);
        result
    });
    result?;
    let mine = plant(3);
    save(path)?;
    drop((both, mine));
    Ok(())
}

/// Forks and waits for the child, which plants 4 blocks and saves beside the parent's path.
fn forked(path: &Path) -> Result<(), Failure> {
    // SAFETY: the child uses only glibc's allocator, which stays usable, and this program's own
    // code.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(std::io::Error::last_os_error().into()),
        0 => {
            let own = plant(4);
            let saved = save(&path.with_file_name("child.json"));
            drop(own);
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(if saved.is_ok() { 0 } else { 3 }) }
        }
        child => {
            let mut status = 0;
            // SAFETY: a child of this process, and a writable status.
            if unsafe { libc::waitpid(child, &raw mut status, 0) } != child || status != 0 {
                return Err(format!("the child ended with status {status}").into());
            }
            Ok(())
        }
    }
}

/// Replaces this process with the quiet program.
pub(crate) fn exec(path: &Path) -> Result<(), Failure> {
    let gone = plant(7);
    save(path)?;
    let error = Command::new(std::env::current_exe()?).arg("quiet").arg(path).exec();
    drop(gone);
    Err(error.into())
}
