//! Threads by the thousand, thread-local destructors that allocate, and threads without std.
#![expect(unsafe_code, reason = "calls and replaces functions of the C library")]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::{io, mem, ptr, thread};

use crate::Failure;
use crate::planted::{plant, save};

/// Starts and ends 3000 threads, at most 8 at once; each leaves one block in its message.
pub(crate) fn many(path: &Path) -> Result<(), Failure> {
    let mut kept = Vec::new();
    for _ in 0..375 {
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(work)).collect();
        for thread in threads {
            kept.extend(thread.join().map_err(|_| "a thread panicked")?);
        }
    }
    save(path)?;
    drop(kept);
    Ok(())
}

fn work() -> Vec<Vec<u8>> {
    let lost: Vec<String> = (0..10).map(|number| format!("lost {number}")).collect();
    drop(std::hint::black_box(lost));
    plant(1)
}

/// A thread-local value that sends a block when its thread ends.
struct Last(mpsc::Sender<Vec<Vec<u8>>>);

impl Drop for Last {
    fn drop(&mut self) {
        drop(std::hint::black_box(vec![1_u8; 1000]));
        // If the receiver is gone, the block is dropped.
        let _ = self.0.send(plant(1));
    }
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Runs 200 threads that allocate in the destructors of their thread-local values.
pub(crate) fn destructors(path: &Path) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..200)
        .map(|_| {
            let sender = sender.clone();
            thread::spawn(move || LAST.try_with(|last| last.replace(Some(Last(sender)))).is_ok())
        })
        .collect();
    drop(sender);
    for thread in threads {
        let was_set = thread.join().map_err(|_| "a thread panicked")?;
        if !was_set {
            return Err("a thread had no values any more".into());
        }
    }
    let kept: Vec<_> = receiver.iter().collect();
    save(path)?;
    drop(kept);
    Ok(())
}

thread_local! {
    static IS_BARE: Cell<bool> = const { Cell::new(false) };
}

/// `PTHREAD_STACK_MIN` of Linux on most processors, in bytes.
const SMALLEST_STACK: usize = 16 << 10;

/// The calls of `pthread_getattr_np` on threads that std did not start: the tracker's.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Counts the call, and makes it.
#[unsafe(no_mangle)]
extern "C" fn pthread_getattr_np(of: libc::pthread_t, to: *mut libc::pthread_attr_t) -> c_int {
    type Function = unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int;
    if IS_BARE.get() {
        CALLS.fetch_add(1, Relaxed);
    }
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_getattr_np".as_ptr()) };
    // SAFETY: the C library's function has this type; a null pointer is `None`.
    let next = unsafe { mem::transmute::<*mut c_void, Option<Function>>(next) };
    // SAFETY: the caller's arguments.
    next.map_or(libc::ENOSYS, |next| unsafe { next(of, to) })
}

extern "C" fn bare_thread(kept: *mut c_void) -> *mut c_void {
    IS_BARE.set(true);
    // SAFETY: `bare` passes a vector that nothing else uses until this thread has ended.
    unsafe { kept.cast::<Vec<Vec<u8>>>().as_mut() }.into_iter().for_each(|kept| *kept = plant(1));
    ptr::null_mut()
}

/// Returns whether the C library is one whose descriptors of threads the tracker can read: glibc
/// 2.34 or later.
fn has_known_descriptors() -> bool {
    // SAFETY: the name is a C string.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_thread_db_sizeof_pthread".as_ptr()) }.is_null()
}

/// Runs four threads with these attributes and without std, which allocate.
fn run_bare(attributes: *const libc::pthread_attr_t, path: &Path) -> Result<(), Failure> {
    let mut kept: [Vec<Vec<u8>>; 4] = Default::default();
    for kept in &mut kept {
        let mut thread = 0;
        let place = ptr::from_mut(kept).cast();
        // SAFETY: the attributes are null or initialised, and the place is valid until the thread
        // is joined.
        let error =
            unsafe { libc::pthread_create(&raw mut thread, attributes, bare_thread, place) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error).into());
        }
        // SAFETY: the thread was started, and is joined once.
        if unsafe { libc::pthread_join(thread, ptr::null_mut()) } != 0 {
            return Err("a thread that cannot be joined".into());
        }
    }
    save(path)?;
    drop(kept);
    Ok(())
}

/// Runs threads with the smallest stack that the C library allows, which also holds the static
/// thread-local storage of the whole program. Std would enlarge the stack by it.
pub(crate) fn small(path: &Path) -> Result<(), Failure> {
    let mut attributes = mem::MaybeUninit::uninit();
    // SAFETY: the attributes are initialised here.
    unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    // SAFETY: initialised above.
    let error = unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), SMALLEST_STACK) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error).into());
    }
    run_bare(attributes.as_ptr(), path)
}

/// Starts threads without std, which allocate. Fails if a hook calls `pthread_getattr_np` where it
/// need not.
pub(crate) fn bare(path: &Path) -> Result<(), Failure> {
    run_bare(ptr::null(), path)?;
    match CALLS.load(Relaxed) {
        0 => Ok(()),
        _ if !has_known_descriptors() => Ok(()),
        calls => Err(format!("{calls} calls of pthread_getattr_np in hooks").into()),
    }
}
