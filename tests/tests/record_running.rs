//! Tests recordings that begin in a running program.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use about_memory::input::live::{Connection, Program};
use about_memory::{Cli, Context};
use clap::Parser;
use memreport::serve::Request;
use memreport_analysis::recording;
use memreport_analysis::recording::{Recording, Which};

/// A program that serves until it is dropped.
struct Served {
    child: Child,
    folder: tempfile::TempDir,
    socket: String,
}

impl Served {
    fn start(mode: Option<&str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_served"));
        command.arg(format!("folder={}", folder.path().display()));
        command.env_remove("DMD").stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(mode) = mode {
            command.env("DMD", mode);
        }
        let mut child = command.spawn().expect("it starts");
        let mut socket = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut socket).expect("it prints its socket");
        Served { child, folder, socket: socket.trim().to_owned() }
    }

    fn tracking(&self) -> String {
        let program = Program { pid: self.child.id(), socket: self.socket.clone().into() };
        let connection = Connection::new(program, Duration::from_secs(20));
        connection.status().expect("it answers").tracking
    }

    fn ask(&self, request: &Request) -> Result<String, String> {
        let program = Program { pid: self.child.id(), socket: self.socket.clone().into() };
        let connection = Connection::new(program, Duration::from_secs(20));
        let parts = connection.ask(request).map_err(|error| error.to_string())?;
        Ok(parts.iter().map(|part| String::from_utf8_lossy(&part.bytes)).collect())
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("running.rec")
    }

    /// Records with these words. Meanwhile the program allocates blocks of 10 MiB, until `ends`.
    fn record(&mut self, words: &[&str], ends: bool) -> (Recording, String, u8) {
        let file = self.file();
        let file = file.to_str().expect("a path of letters");
        let given = ["about-memory", "record", &self.socket, "-o", file];
        let cli = Cli::try_parse_from([&given, words].concat()).expect("good words");
        let recorder = thread::spawn(move || {
            let (mut out, mut notes) = (Vec::new(), Vec::new());
            let code = cli.run(&mut Context::new(&mut out, &mut notes));
            let code = code.unwrap_or_else(|error| panic!("{error}"));
            let code = (0..=u8::MAX).find(|number| code == ExitCode::from(*number));
            (String::from_utf8([out, notes].concat()).expect("text"), code.expect("a byte"))
        });
        let (mut grown, mut has_begun) = (0, false);
        while !recorder.is_finished() {
            thread::sleep(Duration::from_millis(50));
            // Once the file exists and blocks are tracked, the next ones are in it.
            has_begun = has_begun || self.file().exists() && !self.tracking().starts_with("asleep");
            if has_begun && grown < 20 {
                let input = self.child.stdin.as_mut().expect("a pipe");
                input.write_all(b"+").expect("it reads");
                grown += 1;
            } else if ends && grown == 20 {
                drop(self.child.stdin.take());
                grown += 1;
            }
        }
        let (text, code) = recorder.join().expect("it does not panic");
        let recording = std::fs::File::open(self.file()).expect("it recorded");
        (recording::read(recording).expect("a recording"), text, code)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait();
        if !thread::panicking() {
            assert!(status.expect("it ends").success());
        }
    }
}

/// Returns the number of recorded blocks of 10 MiB.
fn big_blocks(recording: &Recording) -> usize {
    let blocks = recording.blocks(Which::Allocated).expect("our own");
    blocks.iter().filter(|block| block.requested == 10 << 20).count()
}

#[test]
fn a_sleeping_program_is_recorded_and_sleeps_again() {
    let mut served = Served::start(None);
    let before = served.tracking();
    assert!(before.starts_with("asleep"), "{before}");
    let (recording, text, code) = served.record(&["--for", "2"], false);
    assert_eq!(code, 0, "{text}");
    assert_eq!(recording.sample_bytes, Some(512 * 1024));
    assert!((10..=20).contains(&big_blocks(&recording)), "{text}");
    assert!(text.contains("Recorded into"), "{text}");
    let after = served.tracking();
    assert!(after.starts_with("off"), "{after}");
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn tracking_goes_on_as_before_the_recording() {
    for mode in ["--mode=profile --sample-bytes=4096", "--mode=live --stacks=partial", "1"] {
        let mut served = Served::start(Some(mode));
        let before = served.tracking();
        let (recording, text, code) = served.record(&["--for", "1.5"], false);
        assert_eq!(code, 0, "{text}");
        // Without options, those in force are kept.
        assert_eq!(recording.sample_bytes.is_some(), mode.contains("profile"));
        assert!(big_blocks(&recording) > 10, "{text}");
        assert_eq!(served.tracking(), before);
        let words = ["--for", "0.3", "--", "--mode=cumulative"];
        let (recording, text, _) = served.record(&words, false);
        assert_eq!(recording.sample_bytes, None, "{text}");
        assert_eq!(served.tracking(), before);
    }
}

#[test]
fn a_recording_ends_whole_with_its_program() {
    let mut served = Served::start(None);
    let (recording, text, code) = served.record(&["--lossy", "--", "--mode=live"], true);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("the program has ended"), "{text}");
    assert!(recording.is_whole && recording.is_lossy);
    assert_eq!(big_blocks(&recording), 20);
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let served = Served::start(None);
    let record = |what: &[(&str, &str)]| {
        let request = Request::new("record");
        let request =
            what.iter().fold(request, |request, (name, value)| request.with(*name, *value));
        served.ask(&request).expect_err("it is refused")
    };
    let refused = record(&[("do", "begin"), ("path", "relative.rec")]);
    assert!(refused.contains("absolute path"), "{refused}");
    let refused = record(&[("do", "begin"), ("path", "/nowhere/at/all.rec")]);
    assert!(refused.contains("/nowhere/at/all.rec: No such file"), "{refused}");
    let refused = record(&[("do", "begin"), ("path", "/x"), ("options", "--mode=some")]);
    assert!(refused.contains("--mode=some"), "{refused}");
    let refused = record(&[("do", "end"), ("number", "7")]);
    assert!(refused.contains("begin anew"), "{refused}");
}

#[test]
fn the_newest_of_several_recordings_decides_and_the_last_one_ends_tracking() {
    let served = Served::start(None);
    let begin = |name: &str, options: &str| {
        let path = served.folder.path().join(name);
        let request = Request::new("record")
            .with("do", "begin")
            .with("path", path.to_str().expect("a path of letters"))
            .with("lossy", "yes")
            .with("options", options);
        let answer = served.ask(&request).expect("it records");
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
        answer["number"].to_string()
    };
    let end = |number: &str| {
        let request = Request::new("record").with("do", "end").with("number", number);
        served.ask(&request).expect("it was in progress");
    };
    let (older, newer) = (begin("a", "--mode=live"), begin("b", "--mode=cumulative"));
    assert_eq!(served.tracking(), "cumulative, full stacks");
    end(&older);
    assert_eq!(served.tracking(), "cumulative, full stacks");
    let newest = begin("c", "--mode=profile");
    end(&newest);
    assert_eq!(served.tracking(), "cumulative, full stacks");
    end(&newer);
    assert!(served.tracking().starts_with("off"), "{}", served.tracking());
}
