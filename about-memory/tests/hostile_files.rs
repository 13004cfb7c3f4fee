//! Hostile files: they name pipes and devices, or unpack to much more than they are. Each command
//! ends within its time and memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use flate2::{Compress, Compression, FlushCompress};

/// The most address space of a command on a small hostile file: 1 GiB for the largest heap that the
/// limits allow, and room for threads and libraries.
#[cfg(unix)]
const MEMORY: u64 = 1536 << 20;

/// Returns the program with limited memory.
#[cfg(unix)]
fn limited() -> Command {
    let limit = format!("ulimit -v {}; exec \"$0\" \"$@\"", MEMORY >> 10);
    let mut command = Command::new("sh");
    command.args(["-c", &limit, env!("CARGO_BIN_EXE_about-memory")]);
    command
}

/// Returns the program. No command of Windows limits its memory, so the refusal alone is tested.
#[cfg(not(unix))]
fn limited() -> Command {
    Command::new(env!("CARGO_BIN_EXE_about-memory"))
}

/// Runs a command with limited memory. Returns its error message.
fn refusal(folder: &Path, args: &[&str]) -> String {
    let output = limited().current_dir(folder).args(args).output().unwrap();
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {notes}");
    assert!(!notes.contains("memory allocation of"), "{args:?}: {notes}");
    notes
}

/// Writes a gzipped file of a megabyte for each kilobyte: a text, and another one repeatedly. The
/// end is cut off.
fn bomb(path: &Path, head: &str, repeated: &str, megabytes: usize) {
    let mut deflate = Compress::new(Compression::best(), false);
    let mut pack = |text: &str| {
        let mut packed = Vec::with_capacity(1 << 16);
        // After a full flush, nothing refers to earlier text, so the bytes can be repeated.
        deflate.compress_vec(text.as_bytes(), &mut packed, FlushCompress::Full).unwrap();
        packed
    };
    let (head, chunk) = (pack(head), pack(&repeated.repeat((1 << 20) / repeated.len() + 1)));
    assert!(chunk.len() < 4 << 10, "{}", chunk.len());
    let gzip_header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    fs::write(path, [&gzip_header[..], &head, &chunk.repeat(megabytes)].concat()).unwrap();
}

const REPORT: &str = r#"{"version":1,"hasMozMallocUsableSize":true,"#;
const REPORTS: &str =
    r#""reports":[{"process":"","path":"a","kind":2,"units":0,"amount":1,"description":""}"#;
const DUMP: &str = r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"live"},"#;
const RECORDING: &str = "{\"recording\":1,\"pid\":1,\"startedMs\":1}\n";

fn assert_refused(command: &[&str], (head, repeated): (&str, &str), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    bomb(&folder.path().join("bomb.gz"), head, repeated, 350);
    let message = refusal(folder.path(), command);
    assert!(message.contains(expected), "{repeated} {command:?}: {message}");
}

#[test]
fn reports_that_unzip_to_much_are_refused_within_the_memory() {
    let dense = "unzips to more than 100 times its size";
    let own = format!("{REPORT}\"memreport\":{{\"notes\":[[]");
    let list = "only the list of reports may be so long";
    assert_refused(&["bomb.gz"], (&own, ",[]"), list);
    assert_refused(&["diff", "bomb.gz", "bomb.gz"], (&own, ",[]"), list);
    assert_refused(&["bomb.gz"], (&format!("{REPORT}\"other\":[0"), ",0"), dense);
    let report = r#",{"process":"","path":"a","kind":2,"units":0,"amount":1,"description":""}"#;
    assert_refused(&["metrics", "bomb.gz"], (&format!("{REPORT}{REPORTS}"), report), dense);
    let path = format!("{REPORT}{REPORTS},{{\"process\":\"\",\"path\":\"");
    assert_refused(&["bomb.gz"], (&path, "a/"), dense);
    let amount = format!("{REPORT}\"reports\":[{{\"path\":\"a\",\"amount\":[0");
    assert_refused(&["bomb.gz"], (&amount, ",{}"), "a value of more than 65536 bytes");
}

#[test]
fn dumps_that_unpack_to_much_are_refused_within_the_memory() {
    let dense = "unpacks to more than 100 times its size";
    let tree: &[&str] = &["heap", "tree", "bomb.gz"];
    assert_refused(tree, (&format!("{DUMP}\"other\":[0"), ",0"), dense);
    let blocks = format!("{DUMP}\"blockList\":[{{\"req\":1}}");
    assert_refused(&["heap", "records", "bomb.gz"], (&blocks, ",{\"req\":1}"), dense);
}

#[test]
fn recordings_that_unpack_to_much_are_refused_within_the_memory() {
    let dense = "unpacks to more than 100 times its size";
    let block = "[\"+\",1,1,4096,1,1]\n";
    assert_refused(&["recording", "bomb.gz"], (RECORDING, block), dense);
    assert_refused(&["heap", "tree", "bomb.gz"], (RECORDING, "[[[["), dense);
}

#[test]
fn reports_with_too_many_paths_are_refused_within_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = "a/".repeat(5 << 20);
    let text = format!("{REPORT}{REPORTS},{{\"path\":\"{path}\"}}]}}");
    fs::write(folder.path().join("deep.json"), text).unwrap();
    let message = refusal(folder.path(), &["deep.json"]);
    assert!(message.contains("more than 4194304 different paths"), "{message}");
}

/// Pipes and devices that have a place among files.
#[cfg(unix)]
mod on_unix {
    use super::*;
    use std::fs::File;
    use std::process::Output;
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
}
