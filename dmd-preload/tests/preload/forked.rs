//! Children that are forked and run no other program: they are reached as any program is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use std::{fs, thread};

use crate::attach::usable;
use crate::dumps::{about_memory, bytes_by_stack};
use crate::subject::{Scratch, With, command, compile, installed};

/// Programs that wait for the end of their input.
struct Forking {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Forking {
    fn start(program: &Path, words: &[&str], state: &'static str) -> Self {
        let mut command = command(program, With::Library(state));
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Forking { child, output }
    }

    /// Returns the numbers of the workers and then of the process that forked them.
    fn processes(&mut self, count: usize) -> Vec<String> {
        let mut line = || {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("text");
            line.trim().to_owned()
        };
        (0..count).map(|_| line()).collect()
    }

    #[track_caller]
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success(), "all workers have succeeded");
    }
}

/// Returns the bytes below a function in a dump of a process, once it has a socket.
#[track_caller]
fn dumped(scratch: &Scratch, pid: &str, function: &str) -> u64 {
    let report = scratch.join("now.json.gz");
    let words = ["snapshot", pid, "--dump", "-o", report.to_str().expect("text")];
    let answer = (0..50).find_map(|_| {
        thread::sleep(Duration::from_millis(100));
        about_memory(&words).ok()
    });
    assert!(answer.is_some(), "{pid}: {:?}", about_memory(&words));
    let stacks = bytes_by_stack(&scratch.join("now.dmd.json.gz"));
    stacks.iter().filter(|(stack, _)| stack.contains(function)).map(|(_, bytes)| *bytes).sum()
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn workers_are_listed_and_have_snapshots_of_their_own() {
    let scratch = Scratch::new("forked");
    let Some(program) = compile(&scratch, "forking.c", "forking", &[]) else { return };
    // The parent forks before it has a socket, and after.
    for words in [&["workers=3"][..], &["workers=3", "pause=1"], &["workers=3", "beside=4"]] {
        let mut forking = Forking::start(&program, words, "1");
        let all = forking.processes(4);
        for (worker, pid) in all.iter().enumerate() {
            let [inherited, own] = [10, if worker == 3 { 0 } else { 100 + worker as u64 }];
            let found = dumped(&scratch, pid, "keep_blocks");
            assert_eq!(found, (inherited + own) * usable(3000), "{words:?}");
        }
        let (listed, _) = about_memory(&["ps"]).expect("it lists");
        for pid in &all {
            assert!(listed.contains(pid), "{words:?}: {listed}");
        }
        let file = scratch.join("worker.rec");
        let words = ["record", &all[0], "--for", "0.3", "-o", file.to_str().expect("text")];
        about_memory(&words).expect("a worker is recorded");
        forking.end();
    }
}

#[test]
fn asleep_workers_begin_to_track_on_request() {
    let scratch = Scratch::new("forked-asleep");
    let Some(program) = compile(&scratch, "forking.c", "forking", &[]) else { return };
    let mut forking = Forking::start(&program, &["workers=1", "pause=1"], "");
    let all = forking.processes(2);
    let report = scratch.join("now.json.gz");
    let words = ["snapshot", &all[0], "-o", report.to_str().expect("text")];
    let is_there = (0..50).any(|_| {
        thread::sleep(Duration::from_millis(100));
        about_memory(&words).is_ok()
    });
    assert!(is_there, "{:?}", about_memory(&words));
    about_memory(&["track", &all[0]]).expect("it tracks from now on");
    forking.end();
}

#[test]
fn a_daemon_is_served_after_its_parent_has_ended() {
    let scratch = Scratch::new("forked-daemon");
    let Some(program) = compile(&scratch, "forking.c", "forking", &[]) else { return };
    for pause in ["pause=0", "pause=1"] {
        let mut forking = Forking::start(&program, &["daemon=1", pause], "1");
        let daemon = forking.processes(1);
        assert_ne!(daemon[0], forking.child.id().to_string());
        assert_eq!(dumped(&scratch, &daemon[0], "keep_blocks"), 10 * usable(3000));
        forking.end();
    }
}

#[test]
fn each_child_removes_its_own_socket() {
    let scratch = Scratch::new("forked-socket");
    let Some(program) = compile(&scratch, "forking.c", "forking", &[]) else { return };
    let folder = scratch.join("sockets");
    fs::create_dir(&folder).expect("ours");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("ours");
    let mut command = command(&program, With::Library("1"));
    command.args(["workers=5", "pause=1"]).env("XDG_RUNTIME_DIR", &folder);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut forking = child;
    let sockets = || -> Vec<PathBuf> {
        fs::read_dir(&folder).expect("a folder").flatten().map(|file| file.path()).collect()
    };
    let are_there = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(50));
        sockets().len() == 6
    });
    assert!(are_there, "{:?}", sockets());
    drop(forking.stdin.take());
    assert!(forking.wait().expect("it ends").success());
    assert!(sockets().is_empty(), "{:?}", sockets());
}

/// Asks for the page, and returns the answer without the lines that differ in time.
fn page(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /page.txt HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.lines().filter(|line| !line.starts_with("Date:")).collect())
}

/// A server becomes a daemon, whose workers are forked and change their user.
#[test]
fn workers_of_nginx_are_reached_and_serve_as_before() {
    let Some(nginx) = installed("nginx").or_else(|| installed("/usr/sbin/nginx")) else { return };
    let scratch = Scratch::new("nginx");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.expect("a free port").port();
    let folder = scratch.0.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};"));
    let config = format!(
        "worker_processes 2; pid {folder}/pid; error_log {folder}/log; events {{}}\n\
         http {{ access_log off; server {{ listen 127.0.0.1:{port}; root {folder}; }} {} }}",
        temporary.concat()
    );
    fs::write(scratch.join("config"), config).expect("a file");
    fs::write(scratch.join("page.txt"), "text ".repeat(10_000)).expect("a file");
    let run = |with, signal: &[&str]| {
        let mut program = command(&nginx, with);
        program.arg("-c").arg(scratch.join("config")).args(signal);
        let started = program.stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(started.expect("it starts").success());
    };
    let stop = || {
        let pid = fs::read_to_string(scratch.join("pid")).unwrap_or_default();
        run(With::Nothing, &["-s", "quit"]);
        let is_gone = || !Path::new("/proc").join(pid.trim()).exists();
        assert!((0..100).any(|_| is_gone() || (thread::sleep(Duration::from_millis(50)), false).1));
    };
    run(With::Nothing, &[]);
    let bare = page(port).expect("it answers");
    assert!(bare.len() > 50_000, "{bare}");
    stop();
    run(With::Library("1"), &[]);
    assert!((0..500).all(|_| page(port).as_ref() == Some(&bare)), "each answer is as before");
    let master = fs::read_to_string(scratch.join("pid")).expect("it runs").trim().to_owned();
    let children = format!("/proc/{master}/task/{master}/children");
    let workers = fs::read_to_string(children).expect("it runs");
    let all: Vec<&str> = workers.split_whitespace().chain([&*master]).collect();
    let bytes = |pid: &&str| dumped(&scratch, pid, "ngx_");
    let found: Vec<u64> = all.iter().map(bytes).collect();
    let (listed, _) = about_memory(&["ps"]).expect("it lists");
    stop();
    assert_eq!(all.len(), 3);
    assert!(found.iter().all(|bytes| *bytes > 50_000), "{found:?}");
    assert!(all.iter().all(|pid| listed.contains(pid)), "{all:?} {listed}");
}
