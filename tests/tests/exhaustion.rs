//! Tests programs that have run out of something. `cargo xtask stress exhaustion` does it for
//! longer.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

#[test]
fn a_program_without_memory_refuses_clients_and_lives() {
    let folder = std::env::temp_dir().join(format!("memreport-tight-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_served"));
    command.arg(format!("folder={}", folder.display())).env("DMD", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut socket = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut socket).unwrap();
    let ask = |command: &str| {
        let mut stream = UnixStream::connect(socket.trim()).unwrap();
        writeln!(stream, "{{\"command\":\"{command}\"}}").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert!(ask("report").starts_with("{\"ok\""));
    assert!(ask("tighten").ends_with("true"));
    for _ in 0..20 {
        let answer = ask("report");
        assert!(answer.contains("the program has less than 32 MiB of memory left"), "{answer}");
    }
    assert!(ask("status").starts_with("{\"ok\""), "it still lives");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    std::fs::remove_dir_all(folder).unwrap();
}
