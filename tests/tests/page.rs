//! Tests the served page with a running program: POST requests, and nothing else, measure and
//! minimize it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use about_memory::command::view::page::serve::Server;
use about_memory::input::live::{self, Target};
use flate2::read::GzDecoder;
use memreport::serve::Request;
use serde_json::{Value, json};

/// A program that serves until it is dropped.
struct Served {
    child: Child,
    folder: std::path::PathBuf,
    socket: String,
}

impl Served {
    fn start(name: &str, words: &[&str]) -> Self {
        let name = format!("memreport-page-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_served"))
            .arg(format!("folder={}", folder.display()))
            .args(words)
            .env("DMD", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut socket = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut socket).expect("it prints its socket");
        Served { child, folder, socket: socket.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Served {
    /// Serves a page of the program, and returns its address.
    fn page(&self) -> String {
        let mut server = Server::bind(0).expect("a free port");
        server.add_program(&Target::Socket(self.socket.clone().into())).expect("it serves");
        assert_eq!(server.measure_all(), [""; 0]);
        let address = server.address();
        std::thread::spawn(move || server.run());
        address
    }
}

/// Sends a request with the page's token. Returns the status and the JSON.
fn ask(address: &str, line: &str) -> (u16, Value) {
    let (host, token) = address.split_once("/?token=").expect("an address with a token");
    let host = host.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let headers = format!("Host: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close");
    write!(stream, "{line} HTTP/1.1\r\n{headers}\r\n\r\n").expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, serde_json::from_reader(GzDecoder::new(&answer[end + 4..])).unwrap_or_default())
}

fn cache(address: &str, moment: u64) -> Option<i64> {
    let (_, report) = ask(address, &format!("GET /moments/{moment}/reports"));
    let reports = report["reports"].as_array().expect("reports").clone();
    reports.iter().find(|report| report["path"] == "explicit/served/cache")?["amount"].as_i64()
}

#[test]
fn a_running_program_is_measured_and_minimized_from_its_page() {
    let served = Served::start("measured", &[]);
    let address = served.page();

    assert_eq!(cache(&address, 0), Some(1_003_504));
    for not_a_post in ["GET /minimize/0", "HEAD /minimize/0"] {
        assert_eq!(ask(&address, not_a_post).0, 404);
    }
    assert_eq!(ask(&address, "POST /measure-briefly/0"), (200, json!({ "moment": 1 })));
    assert_eq!(cache(&address, 1), Some(1_003_504));
    assert_eq!(ask(&address, "POST /minimize/0"), (200, json!({ "moment": 2 })));
    assert_eq!(cache(&address, 2), Some(0));

    let (_, all) = ask(&address, "GET /moments");
    let sheets: Vec<&Value> = all["moments"]
        .as_array()
        .expect("moments")
        .iter()
        .map(|moment| &moment["sheets"])
        .collect();
    let [full, brief] = [json!(["dark", "heap", "coverage", "resident"]), json!(["resident"])];
    assert_eq!(sheets, [&full, &brief, &full]);
    assert_eq!(all["sources"][0]["name"], format!("served (pid {})", served.child.id()));
    let (_, found) = ask(&address, "GET /moments/0/findings");
    assert!(found["coverage"]["score"].as_f64().expect("a score") > 50.0, "{found}");
    let resident = found["resident"].as_str().expect("a fragment");
    assert!(resident.contains(": 1 snapshot<") && resident.contains("by block"), "{resident}");
    let (_, found) = ask(&address, "GET /moments/2/findings");
    let resident = found["resident"].as_str().expect("a fragment");
    assert!(resident.contains(": 3 snapshots over "), "{resident}");
    // The blocks of the first and the last snapshot are known; those between need not be.
    assert!(resident.contains("<caption>heap-allocated by block</caption>"), "{resident}");
}

#[test]
fn what_a_program_has_kept_of_its_past_is_on_its_page() {
    let served = Served::start("past", &["history"]);
    let connection = Target::Socket(served.socket.clone().into());
    let connection = live::choose(&connection, Duration::from_secs(30)).expect("it serves");
    let deadline = Instant::now() + Duration::from_secs(30);
    while connection.ask(&Request::new("history")).expect("it answers").len() < 3 {
        assert!(Instant::now() < deadline, "three snapshots are not kept");
        std::thread::sleep(Duration::from_millis(10));
    }
    let address = served.page();
    let (_, all) = ask(&address, "GET /moments");
    let moments = all["moments"].as_array().expect("moments");
    assert_eq!(moments.len(), 4);
    let times: Vec<f64> = moments.iter().filter_map(|moment| moment["taken"].as_f64()).collect();
    assert!(times.len() == 4 && times.is_sorted(), "{times:?}");
    let (_, found) = ask(&address, "GET /moments/3/findings");
    let resident = found["resident"].as_str().expect("a fragment");
    assert!(resident.contains(": 4 snapshots over "), "{resident}");
}
