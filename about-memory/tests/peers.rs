//! Programs that answer slowly, endlessly or not at all: each is given up in its time, and the
//! others are shown, with the notes of their reports.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use about_memory::input::live::{Connection, LiveError, Program};
use about_memory::{Cli, Context};
use clap::Parser as _;
use memreport::serve::Request;
use memreport::serve::protocol::Status;
use serde_json::Value;

/// The time limit of requests that are not answered.
const TIMEOUT: Duration = Duration::from_millis(300);

/// The time of a hang: no request comes near it, even on a busy machine.
const HANG: Duration = Duration::from_secs(60);

/// Listens as this process, and answers every request by a function.
fn serve(
    folder: &Path,
    timeout: Duration,
    answer: impl Fn(UnixStream) + Send + 'static,
) -> Connection {
    serve_requests(folder, timeout, move |_, stream| answer(stream))
}

/// Listens as this process, and answers every request by a function of the request and the stream.
fn serve_requests(
    folder: &Path,
    timeout: Duration,
    answer: impl Fn(Request, UnixStream) + Send + 'static,
) -> Connection {
    let pid = std::process::id();
    let socket = folder.join(format!("memreport-{pid}.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            answer(Request::parse(line.trim_end().as_bytes()).unwrap(), stream);
        }
    });
    Connection::new(Program { pid, socket }, timeout)
}

/// Sends a byte now and then, more often than the time limit, until the client has gone.
fn dribble(mut stream: &UnixStream) {
    while stream.write_all(b" ").is_ok() {
        thread::sleep(TIMEOUT / 30);
    }
}

fn assert_late(connection: &Connection) {
    let started = Instant::now();
    let error = connection.ask(&Request::new("report")).unwrap_err();
    let is_late = matches!(&error, LiveError::Io(_, error)
        if error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(is_late, "{error}");
    assert!(started.elapsed() < HANG);
}

#[test]
fn an_answer_that_dribbles_ends_at_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    assert_late(&serve(folder.path(), TIMEOUT, |stream| dribble(&stream)));
    let folder = tempfile::tempdir().unwrap();
    assert_late(&serve(folder.path(), TIMEOUT, |mut stream| {
        writeln!(stream, r#"{{"ok":[{{"name":"report","bytes":1000000}}]}}"#).unwrap();
        dribble(&stream);
    }));
}

#[test]
fn a_program_that_never_accepts_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("memreport-1.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    // Fill its queue.
    let mut queue = Vec::new();
    let address = rustix::net::SocketAddrUnix::new(&socket).unwrap();
    loop {
        let (family, kind) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
        let flags = rustix::net::SocketFlags::NONBLOCK;
        let client = rustix::net::socket_with(family, kind, flags, None).unwrap();
        if rustix::net::connect(&client, &address).is_err() {
            break;
        }
        queue.push(client);
    }
    assert_late(&Connection::new(Program { pid: 1, socket }, TIMEOUT));
}

#[test]
fn the_parts_of_an_answer_share_one_budget() {
    let folder = tempfile::tempdir().unwrap();
    let one = r#"{"name":"a","bytes":3000000000}"#;
    let connection = serve(folder.path(), HANG, move |mut stream| {
        let _ = writeln!(stream, r#"{{"ok":[{one},{one}]}}"#);
        dribble(&stream);
    });
    let error = connection.ask(&Request::new("report")).unwrap_err().to_string();
    assert!(error.contains("6000000000 bytes announced"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let connection = serve(folder.path(), HANG, |mut stream| {
        let _ = writeln!(stream, r#"{{"ok":[{{"name":"status","bytes":2000000}}]}}"#);
        dribble(&stream);
    });
    let error = connection.status().unwrap_err().to_string();
    assert!(error.contains("2000000 bytes announced"), "{error}");
}

#[test]
fn the_notes_of_a_report_follow_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let mut status = Status::default();
    (status.pid, status.name) = (std::process::id(), "busy".into());
    let status = serde_json::to_string(&status).unwrap();
    let report = r#"{"version":1,"hasMozMallocUsableSize":true,"memreport":{"version":1,
        "notes":["3.00 MB were freed during the collection"]},"reports":[]}"#;
    serve_requests(folder.path(), HANG, move |request, mut stream| {
        let text = if request.command == "status" { &status } else { report };
        let (name, bytes) = (&request.command, text.len());
        writeln!(stream, r#"{{"ok":[{{"name":"{name}","bytes":{bytes}}}]}}"#).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
    });
    let shown = |format: &[&str]| {
        let words = ["about-memory", "ps", "--timeout", "60", "--folder"];
        let words = words.map(OsStr::new).into_iter().chain([folder.path().as_os_str()]);
        let cli = Cli::try_parse_from(words.chain(format.iter().map(OsStr::new))).unwrap();
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        cli.run(&mut Context::new(&mut out, &mut notes)).unwrap();
        [out, notes].map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let note = "3.00 MB were freed during the collection";
    let [text, notes] = shown(&[]);
    assert!(text.contains("busy"), "{text}");
    assert_eq!(notes, format!("note: {}: {note}\n", std::process::id()));
    let list: Value = serde_json::from_str(&shown(&["--json"])[0]).unwrap();
    assert_eq!(list[0]["notes"], serde_json::json!([note]));
}

#[test]
fn a_request_for_a_report_has_the_options_and_half_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, requests) = std::sync::mpsc::channel();
    let connection = serve_requests(folder.path(), HANG, move |request, mut stream| {
        sender.send(request).unwrap();
        stream.write_all(b"{\"ok\":[{\"name\":\"report\",\"bytes\":2}]}\n{}").unwrap();
    });
    let table = [
        (false, false, [None, None]),
        (true, false, [Some("yes"), None]),
        (false, true, [None, Some("yes")]),
    ];
    for (with_dump, anonymizes, expected) in table {
        let report = connection.clone().anonymize(anonymizes).report(with_dump).unwrap();
        assert_eq!((report.report, report.dump), (b"{}".to_vec(), None));
        let request = requests.recv().unwrap();
        assert_eq!(["dump", "anonymize"].map(|option| request.get(option)), expected);
        assert_eq!(["timeout", "patience"].map(|option| request.get(option)), [Some("30"); 2]);
    }
}
