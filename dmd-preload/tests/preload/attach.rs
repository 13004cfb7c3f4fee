//! Programs that are tracked from a moment of their life on.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::dumps::{about_memory, bytes_by_stack};
use crate::killed::{self, is_killed};
use crate::subject::{Scratch, compile, installed};

/// A subject that follows the lines of its input.
pub(crate) struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(program: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program);
        for name in ["DMD", "LD_PRELOAD", "MEMREPORT_CHILD_OF", "MEMREPORT_RUN"] {
            command.env_remove(name);
        }
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut running = Running { child, input, output };
        // Its libraries are loaded.
        running.tell("keep 0 0");
        running
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("it reads");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("it answers");
        assert_eq!(answer, "done\n");
    }

    pub(crate) fn attach(&self, words: &[&str]) -> Result<String, String> {
        let pid = self.pid();
        let given = [&["attach", &pid][..], words].concat();
        about_memory(&given).map(|(out, _)| out)
    }

    /// Returns the bytes whose stacks contain these functions.
    fn bytes_of(&self, scratch: &Scratch, functions: &str) -> u64 {
        let report = scratch.join("now.json.gz");
        let report = report.to_str().expect("text");
        about_memory(&["snapshot", &self.pid(), "--dump", "-o", report]).expect("it answers");
        let stacks = bytes_by_stack(&scratch.join("now.dmd.json.gz"));
        let of_functions = stacks
            .iter()
            .filter(|(stack, _)| stack.contains(functions) && !stack.contains("before tracking"));
        of_functions.map(|(_, bytes)| *bytes).sum()
    }

    /// Has it end. It must succeed: its blocks have kept their contents.
    #[track_caller]
    pub(crate) fn end(mut self) {
        drop(self.input);
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

/// Returns the states of the threads of a process, a letter each.
pub(crate) fn states(pid: &str) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let state = |status: String| status.split("State:\t").nth(1)?.chars().next();
    tasks.filter_map(|task| state(fs::read_to_string(task.path().join("status")).ok()?)).collect()
}

/// The usable bytes of glibc's block for this request.
pub(crate) fn usable(requested: u64) -> u64 {
    (requested + 8).next_multiple_of(16) - 8
}

#[test]
fn new_blocks_are_tracked_to_the_byte_and_old_ones_as_a_sum() {
    let scratch = Scratch::new("attach");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    for words in [&[][..], &["wait=2"], &["churn=3", "wait=1"]] {
        let mut running = Running::start(&program, words);
        running.tell("keep 1000 5000");
        let told = running.attach(&["--", "--mode=live"]).expect("it is tracked");
        assert!(told.contains("is tracked: live, full stacks"), "{told}");
        running.tell("keep 300 3000");
        running.tell("keep 7 100000");
        let expected = 300 * usable(3000) + 7 * usable(100_000);
        // The list of the kept blocks is of the same function.
        let list = usable(1307 * 8);
        assert_eq!(running.bytes_of(&scratch, "main;keep"), expected + list, "{words:?}");
        let tree = scratch.join("now.dmd.json.gz");
        let (tree, _) =
            about_memory(&["heap", "tree", tree.to_str().expect("text")]).expect("a dump");
        assert!(tree.contains("from before tracking began"), "{tree}");
        // Old and new blocks are freed.
        running.tell("drop");
        assert_eq!(running.bytes_of(&scratch, "main;keep"), list, "{words:?}");
        assert!(!states(&running.pid()).contains(['T', 't']));
        running.end();
    }
}

#[test]
fn the_heap_is_as_big_as_it_was() {
    let scratch = Scratch::new("attach-sum");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let mut running = Running::start(&program, &["wait=2"]);
    running.tell("keep 1000 5000");
    let (text, _) = about_memory(&["inspect", &running.pid(), "--json"]).expect("it runs");
    let before: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    running.attach(&[]).expect("it is tracked");
    running.bytes_of(&scratch, "");
    let dump = scratch.join("now.dmd.json.gz");
    let dump = dump.to_str().expect("text");
    let (text, _) = about_memory(&["heap", "tree", dump, "--json"]).expect("a dump");
    let tree: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    // The linker has a few blocks of its own for the library, which nobody counts.
    let differs = |now: &str, then: &str| {
        let number = |value: &serde_json::Value| value.as_i64().expect("a number");
        (number(&tree[now]) - number(&before["used"][then])).abs()
    };
    assert!(differs("bytes", "bytes") < 2048, "{text}{before}");
    assert!(differs("blocks", "blocks") < 16, "{text}{before}");
    running.end();
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn libraries_that_are_loaded_later_are_tracked() {
    let scratch = Scratch::new("attach-later");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let shared = ["-shared", "-fPIC"];
    let Some(library) = compile(&scratch, "keeping.c", "keeping.so", &shared) else { return };
    for lazily in [false, true] {
        let mut running = Running::start(&program, &[]);
        running.attach(&[]).expect("it is tracked");
        running.tell(&format!("load {}", library.display()));
        // The tracker looks for new modules once a second.
        thread::sleep(Duration::from_millis(if lazily { 3500 } else { 2500 }));
        running.tell("keep 50 2000");
        assert_eq!(running.bytes_of(&scratch, "keep"), 50 * usable(2000));
        running.end();
    }
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn many_programs_under_load_are_attached_to_and_none_is_harmed() {
    let scratch = Scratch::new("attach-many");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    for round in 0..20 {
        let running = Running::start(&program, &["churn=3", "wait=2"]);
        thread::sleep(Duration::from_millis(round * 3));
        running.attach(&["--", "--stacks=none"]).expect("it is tracked");
        assert!(!states(&running.pid()).contains(['T', 't']));
        running.end();
    }
}

/// Wherever `attach` is killed, its thread comes back by itself.
#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn an_attach_that_is_killed_leaves_the_program_alone() {
    let scratch = Scratch::new("attach-killed");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    let begin = Instant::now();
    let whole = Running::start(&program, &["wait=2"]);
    assert!(killed::start(&["attach", &whole.pid()]).wait().expect("it ends").success());
    let time = begin.elapsed();
    whole.end();
    let (mut killed, mut loaded) = (0, 0);
    for part in 1..60 {
        let mut running = Running::start(&program, &["churn=1", "wait=1"]);
        killed += u32::from(is_killed(&["attach", &running.pid()], time * part / 60));
        running.tell("keep 100 1000");
        let maps = fs::read_to_string(format!("/proc/{}/maps", running.pid()));
        loaded += u32::from(maps.expect("it runs").contains("/memreport-"));
        running.tell("drop");
        assert!(!states(&running.pid()).contains(['T', 't']), "part {part}");
        running.end();
    }
    println!("{killed} of 59 were killed; {loaded} programs had the library");
    assert!(killed > 0, "none was killed");
}

#[test]
fn programs_of_others_are_attached_to() {
    let Some(python) = installed("python3") else { return };
    let scratch = Scratch::new("attach-python");
    let script = "import sys\nkept = []\nfor line in sys.stdin:\n    \
                  kept.append([bytearray(10000 + n) for n in range(int(line.split()[1]))])\n    \
                  print('done', flush=True)";
    let mut running = Running::start(&python, &["-u", "-c", script]);
    running.tell("keep 10 0");
    running.attach(&[]).expect("it is tracked");
    running.tell("keep 100 0");
    let bytes = running.bytes_of(&scratch, "");
    // 100 blocks of 10,001 to 10,100 bytes: a bytearray has a zero at its end.
    assert!((1_004_000..1_200_000).contains(&bytes), "{bytes}");
    let status = about_memory(&["record", &running.pid(), "--for", "0.3", "-o", "/dev/null"]);
    assert!(status.is_err(), "/dev/null is no place for a recording");
    running.end();
}

#[test]
fn what_cannot_be_tracked_is_refused_with_the_reason() {
    let scratch = Scratch::new("attach-refused");
    let Some(program) = compile(&scratch, "running.c", "running", &[]) else { return };
    #[track_caller]
    fn refused(running: &Running, reason: &str) {
        let error = running.attach(&[]).expect_err("it is refused");
        assert!(error.contains(reason), "{error}");
        assert!(!states(&running.pid()).contains('t'));
    }
    let mut filtered = Running::start(&program, &["filter"]);
    filtered.tell("drop");
    refused(&filtered, "has a filter of system calls");
    filtered.end();

    if let Some(program) = compile(&scratch, "running.c", "static", &["-static"]) {
        let running = Running::start(&program, &[]);
        refused(&running, "it is statically linked");
        running.end();
    }
    let running = Running::start(&program, &[]);
    let bad = running.attach(&["--", "--mode=some"]).expect_err("no mode");
    assert!(bad.contains("--mode=some"), "{bad}");
    let pid = running.pid();
    let signal = |name: &str| Command::new("kill").args([name, &pid]).status();
    signal("-STOP").expect("kill starts");
    while !states(&pid).contains('T') {
        thread::sleep(Duration::from_millis(1));
    }
    refused(&running, "is stopped; let it go on first: kill -CONT");
    signal("-CONT").expect("kill starts");
    running.attach(&[]).expect("it is tracked after all");
    refused(&running, "has a socket already; use `about-memory track");
    running.end();
    let gone = about_memory(&["attach", "4194304"]).expect_err("there is none");
    assert!(gone.contains("there is no process 4194304"), "{gone}");
}

#[test]
fn a_sleeping_program_sleeps_as_long_as_before() {
    const SECONDS: u64 = 4;
    let began = Instant::now();
    let mut sleep = Command::new("/bin/sleep");
    let mut asleep = sleep.arg(SECONDS.to_string()).spawn().expect("it starts");
    let pid = asleep.id().to_string();
    while states(&pid) != "S" {
        thread::sleep(Duration::from_millis(1));
    }
    about_memory(&["attach", &pid]).expect("it is tracked");
    assert!(asleep.wait().expect("it ends").success());
    assert!(began.elapsed() >= Duration::from_secs(SECONDS), "{:?}", began.elapsed());
}

#[test]
fn root_attaches_to_programs_of_other_users() {
    let mut sleep = Command::new("/bin/sleep");
    let mut theirs = match sleep.arg("60").uid(65534).gid(65534).spawn() {
        Ok(theirs) => theirs,
        Err(error) => {
            return println!("not run: a program of another user, which needs root: {error}");
        }
    };
    let pid = theirs.id().to_string();
    // It has loaded its libraries, and sleeps.
    while states(&pid) != "S" {
        thread::sleep(Duration::from_millis(1));
    }
    let attached = about_memory(&["attach", &pid]);
    theirs.kill().expect("it runs");
    theirs.wait().expect("it ends");
    attached.expect("root may attach");
}
