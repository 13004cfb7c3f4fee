//! Tests the two ends of a connection: clients that hurt no program, programs that are gone or
//! another one, and other users.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use about_memory::input::live::{self, LiveError, Target};
use memreport::serve::Request;

use super::{SERVED, Served, amount, wait_until};
use crate::executable::install;

#[test]
fn who_says_nothing_or_nonsense_or_hangs_up_hurts_nobody() {
    let program = Served::start("garbage", &["busy"]);
    let connect = || UnixStream::connect(&program.socket).expect("it listens");
    let silent: Vec<_> = (0..100).map(|_| connect()).collect();
    let mut half = connect();
    half.write_all(b"{\"command\":").expect("it is read");
    drop(half);
    let mut gone = connect();
    gone.write_all(b"{\"command\":\"report\"}\n").expect("it is read");
    drop(gone);
    for (words, answer) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "not understood"),
        (b"\n", "not understood"),
        (b"\xff\xfe\n", "not understood"),
        (b"{\"command\":\"report\",\"arguments\":7}\n", "not understood"),
    ] {
        let mut stream = connect();
        stream.write_all(words).expect("it is read");
        let mut message = String::new();
        stream.read_to_string(&mut message).expect("it answers");
        assert!(
            message.starts_with("{\"error\":") && message.contains(answer),
            "{words:?}: {message}"
        );
    }
    let mut long = connect();
    // The program may have closed the connection earlier.
    let _ = long.write_all(&[b'x'; 100_000]);
    let mut message = Vec::new();
    let _ = long.read_to_end(&mut message);
    for _ in 0..20 {
        assert!(amount(&program.report(), "explicit/served/words").is_some());
    }
    drop(silent);
}

#[test]
fn a_foreign_listener_at_the_socket_is_skipped() {
    let program = Served::start("peer", &[]);
    let own = std::process::id();
    let stolen = program.folder.join(format!("memreport-{own}.sock"));
    std::fs::rename(&program.socket, &stolen).expect("a new name");
    let target = Target::Socket(stolen.clone());
    let error = live::choose(&target, Duration::from_secs(1)).expect("a socket").status();
    assert!(
        matches!(error, Err(LiveError::WrongPeer { pid, peer, .. }) if pid == own && peer == program.pid()),
        "{error:?}"
    );
    assert!(matches!(live::program(own), Err(LiveError::NotServing(..))));
    assert!(matches!(live::program(u32::MAX), Err(LiveError::NoProcess(_))));
}

#[test]
fn a_server_that_is_stopped_leaves_no_socket_and_a_killed_ones_is_cleared() {
    let program = Served::start("stop", &["stop"]);
    let socket = program.socket.clone();
    let folder = program.folder.clone();
    let mut killed = Served::start("killed", &[]);
    killed.child.kill().expect("it runs");
    killed.child.wait().expect("it is dead");
    assert!(killed.socket.exists(), "a killed program clears nothing");
    assert_eq!(live::find_in(&killed.folder), [], "and no program is found there");
    assert!(!killed.socket.exists(), "the next client removes it");
    let _ = std::fs::remove_dir_all(&killed.folder);
    // Its exit status is that of a killed program.
    let _ = std::mem::ManuallyDrop::new(killed);
    std::fs::create_dir_all(&folder).expect("still there");
    drop(program);
    assert!(!socket.exists());
}

#[test]
fn a_forked_child_does_not_keep_clients_waiting() {
    let mut program = Served::start("fork", &["fork"]);
    assert!(program.ask(&Request::new("ping")).is_ok());
    program.child.kill().expect("it runs");
    program.child.wait().expect("it is dead");
    // The child closes it before anything else, but may not have begun yet.
    wait_until("the child closes it", || {
        UnixStream::connect(&program.socket)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    });
    let _ = std::fs::remove_dir_all(&program.folder);
    // Its exit status is that of a killed program.
    let _ = std::mem::ManuallyDrop::new(program);
}

/// Both sides get the other's user from the kernel. The test needs root for its two users.
#[test]
fn programs_of_two_users_refuse_each_other() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if memreport::serve::user() != 0 {
        println!("not run: only root can be two users");
        return;
    }
    let program = Served::start("users", &[]);
    // The folder and the socket are opened to everybody.
    for path in [&program.folder, &program.socket] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("ours");
    }
    // A copy that everybody may run.
    let copy = program.folder.join("served");
    install(SERVED.as_ref(), &copy, 0o755);
    let ask = |socket: &Path| {
        let mut other = Command::new(&copy);
        let output = other.arg(format!("ask={}", socket.display())).uid(65534).gid(65534).output();
        let output = output.expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    };
    let message = ask(&program.socket);
    assert!(message.contains("refused: this program is another user's"), "{message}");
    // Our own client refuses as well: this test as another user, in a process of its own.
    let itself = program.folder.join("live");
    install(&std::env::current_exe().expect("it runs"), &itself, 0o755);
    let mut client = Command::new(&itself);
    client.args([
        "--exact",
        "live::clients::subject_refuses_a_program_of_another_user",
        "--ignored",
    ]);
    client.env(SOCKET, &program.socket).uid(65534).gid(65534).current_dir("/");
    let output = client.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&program.socket, private).expect("ours");
    assert!(ask(&program.socket).contains("PermissionDenied"));
}

/// The program's socket, for the test process of the other user.
const SOCKET: &str = "MEMREPORT_TEST_SOCKET";

#[test]
#[ignore = "run as another user by the test above"]
fn subject_refuses_a_program_of_another_user() {
    let socket = std::env::var(SOCKET).expect("run by the test above");
    let target: Target = socket.parse().expect("a path");
    let status = live::choose(&target, Duration::from_secs(5)).expect("a socket").status();
    assert!(matches!(status, Err(LiveError::NotAllowed(_))), "{status:?}");
}
