//! Hostile files: they name pipes and devices, or unpack to much more than they are. Each command
//! ends within its time and memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// A command that still runs after this time hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a command in a folder, and kills it after [`DEADLINE`].
fn run(folder: &Path, args: &[&str]) -> Output {
    let (out, notes) = (folder.join("out.txt"), folder.join("notes.txt"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_about-memory"))
        .current_dir(folder)
        .args(args)
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&notes).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{args:?} hangs");
        }
        thread::sleep(Duration::from_millis(5));
    };
    Output { status, stdout: fs::read(out).unwrap(), stderr: fs::read(notes).unwrap() }
}

/// Returns a dump with two frames in a module.
fn dump_with_module(path: &str) -> String {
    format!(
        r##"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"live"}},
        "memreport":{{"version":1,"modules":[{{"path":"{path}","buildId":"abcdef","base":"0"}}]}},
        "blockList":[{{"req":8,"alloc":"A"}}],"traceTable":{{"A":["f","g"]}},
        "frameTable":{{"f":"#00: ???[{path} +0x10]","g":"#01: ???[{path} +0x20]"}}}}"##
    )
}

#[test]
fn modules_that_are_pipes_or_devices_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(at("pipe.so")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", at("zero.so")).unwrap();
    std::os::unix::fs::symlink(at("pipe.so"), at("to-pipe.so")).unwrap();
    fs::create_dir(at("folder.so")).unwrap();
    for module in ["pipe.so", "to-pipe.so", "zero.so", "folder.so"] {
        let path = at(module).display().to_string();
        fs::write(at("dump.json"), dump_with_module(&path)).unwrap();
        for command in [&["heap", "tree", "dump.json"][..], &["heap", "records", "dump.json"]] {
            let output = run(folder.path(), command);
            let notes = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?} {module}: {notes}");
            let expected = format!("{path} cannot be read (it is no regular file)");
            assert!(notes.contains(&expected), "{command:?} {module}: {notes}");
        }
    }
}
