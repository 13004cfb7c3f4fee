//! Collections beside the dynamic linker and `fork`: none waits for ever. Each question runs in a
//! process of its own, which is killed if it hangs.
#![cfg(all(target_os = "linux", not(miri)))]
#![expect(unsafe_code, reason = "loads a library, and forks")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use memreport::Reports;

/// A process that still runs after this time hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs an ignored test of this file in a process of its own.
fn run(test: &str, variables: &[(&str, &Path)]) {
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--ignored", "--exact", test])
        .envs(variables.iter().copied())
        .spawn()
        .expect("a process");
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if started.elapsed() > DEADLINE {
            child.kill().expect("a child");
            child.wait().expect("a child");
            panic!("{test} hangs");
        }
        thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{test}: {status}");
}

/// A library whose initialiser calls the function at the address in `$CALL_BACK`.
const LIBRARY: &str = "
char *getenv(const char *);
unsigned long long strtoull(const char *, char **, int);
__attribute__((constructor)) static void begin(void) {
    ((void (*)(void))strtoull(getenv(\"CALL_BACK\"), 0, 10))();
}
";

#[test]
fn an_initialiser_may_take_a_snapshot_while_another_thread_does() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (folder.join("initialiser.c"), folder.join("libinitialiser.so"));
    std::fs::write(&source, LIBRARY).expect("a folder");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(compiler.status().expect("Rust links with it").success());
    run("subject_in_an_initialiser", &[("LIBRARY", &library)]);
}

static IS_OVER: AtomicBool = AtomicBool::new(false);

extern "C" fn take_snapshots() {
    for _ in 0..20 {
        assert!(!memreport::snapshot().reports.is_empty());
    }
}

#[test]
#[ignore = "runs in a process of its own"]
fn subject_in_an_initialiser() {
    let path = std::env::var("LIBRARY").expect("the other test sets it") + "\0";
    std::env::set_var("CALL_BACK", (take_snapshots as extern "C" fn() as usize).to_string());
    let other = thread::spawn(|| {
        while !IS_OVER.load(SeqCst) {
            take_snapshots();
            // The lock is not fair: leave it to the initialiser.
            thread::sleep(Duration::from_millis(1));
        }
    });
    // SAFETY: the path ends with NUL; the initialiser calls the function above.
    let loaded = unsafe { libc::dlopen(path.as_ptr().cast(), libc::RTLD_NOW) };
    assert!(!loaded.is_null());
    IS_OVER.store(true, SeqCst);
    other.join().expect("no panic");
}

#[test]
fn a_child_that_was_forked_during_a_collection_takes_snapshots() {
    run("subject_in_a_child", &[]);
}

#[test]
#[ignore = "runs in a process of its own"]
fn subject_in_a_child() {
    let (begun, has_begun) = mpsc::sync_channel(0);
    let (end, may_end) = mpsc::sync_channel::<()>(0);
    let parent = std::process::id();
    let channels = std::sync::Mutex::new((begun, may_end));
    let reporter = memreport::register(move |_: &mut Reports<'_>| {
        // The child has no thread that would answer.
        if std::process::id() == parent {
            let (begun, may_end) = &*channels.lock().expect("no panic");
            begun.send(()).expect("the test waits");
            may_end.recv().expect("the test sends");
        }
    });
    let collecting = thread::spawn(memreport::snapshot);
    has_begun.recv().expect("it begins");
    let status = status_of_child(|| !memreport::snapshot().reports.is_empty());
    end.send(()).expect("the reporter waits");
    collecting.join().expect("no panic");
    drop(reporter);
    assert_eq!(status, 0, "the child ended by a signal or found no reports");
}

/// Calls the function in a forked child. Returns the child's status: 0 if the function returns
/// true, and no signal ends the child.
fn status_of_child(succeeds: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child calls functions that work after a fork, and ends without returning.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: plain calls. The alarm ends the child if it hangs.
        unsafe { libc::alarm(30) };
        let fails = !succeeds();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(fails)) };
    }
    let mut status = 0;
    // SAFETY: a valid place for the status of our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

#[cfg(feature = "c-api")]
mod in_c {
    use std::ffi::{c_char, c_void};
    use std::process::id;

    use super::*;

    type Collect = unsafe extern "C" fn(*const c_void, *mut c_void);

    extern "C" {
        fn memreport_register(collect: Collect, data: *mut c_void) -> u64;
        fn memreport_unregister(reporter: u64);
        fn memreport_missed(reports: *const c_void, path: *const c_char);
    }

    static IS_COLLECTING: AtomicBool = AtomicBool::new(false);
    static MAY_END: AtomicBool = AtomicBool::new(false);

    /// Waits in the process of this number.
    unsafe extern "C" fn collect(reports: *const c_void, waiting_process: *mut c_void) {
        IS_COLLECTING.store(true, SeqCst);
        while waiting_process as usize == id() as usize && !MAY_END.load(SeqCst) {
            thread::yield_now();
        }
        // SAFETY: the reports of this call, and a C string.
        unsafe { memreport_missed(reports, c"explicit/in-c".as_ptr()) };
    }

    #[test]
    fn a_child_that_was_forked_while_a_reporter_in_c_runs_can_run_and_unregister_it() {
        run("in_c::subject_in_a_child", &[]);
    }

    #[test]
    #[ignore = "runs in a process of its own"]
    fn subject_in_a_child() {
        // SAFETY: the function takes a number as its data.
        let reporter = unsafe { memreport_register(collect, id() as usize as *mut c_void) };
        let collecting = thread::spawn(memreport::snapshot);
        while !IS_COLLECTING.load(SeqCst) {
            thread::yield_now();
        }
        let status = status_of_child(|| {
            let snapshot = memreport::snapshot();
            // SAFETY: a plain call.
            unsafe { memreport_unregister(reporter) };
            snapshot.missed().iter().any(|missed| missed.reporter == "explicit/in-c")
        });
        MAY_END.store(true, SeqCst);
        collecting.join().expect("no panic");
        assert_eq!(status, 0, "the child ended by a signal or missed the reporter");
    }
}
