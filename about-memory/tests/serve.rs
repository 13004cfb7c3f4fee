//! The server, asked over TCP as browsers and others ask: what it answers, and what it keeps out.

use about_memory::command::view::page::serve::Server;
use about_memory::command::view::page::{Measured, Source};
use about_memory::error::Failure;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A program of which each measurement is a byte bigger, until it is made smaller.
#[derive(Debug, Default)]
struct Growing {
    bytes: AtomicI64,
    is_tracked: AtomicBool,
}

const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
    "blockList":[{"req":24,"slop":8,"alloc":"A"}],"traceTable":{"A":["F"]},"frameTable":{"F":"#01: main (a.rs:1)"}}"##;

impl Source for Growing {
    fn name(&self) -> String {
        "growing (pid 7)".into()
    }

    fn measure(&self, with_dump: bool) -> Result<Measured, Failure> {
        // No other memory hangs on it.
        let bytes = self.bytes.fetch_add(1, Ordering::Relaxed);
        if bytes < 0 {
            return Err("the program has ended".into());
        }
        let report = json!({
            "version": 1, "hasMozMallocUsableSize": true, "reports": [
                {"process": "", "path": "explicit/a", "kind": 1, "units": 0, "amount": bytes, "description": "A."},
                {"process": "", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 2 * bytes, "description": "B."},
            ],
        });
        let is_tracked = with_dump && self.is_tracked.load(Ordering::Relaxed);
        let dump = is_tracked.then(|| DUMP.as_bytes().to_vec());
        Ok(Measured { report: report.to_string().into_bytes(), dump })
    }

    fn minimize(&self) -> Result<(), Failure> {
        self.bytes.store(100, Ordering::Relaxed);
        Ok(())
    }

    fn track(&self, is_on: bool) -> Result<(), Failure> {
        self.is_tracked.store(is_on, Ordering::Relaxed);
        Ok(())
    }
}

/// A server of our own; it ends with the process.
struct Served {
    port: u16,
    token: String,
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Served {
    fn start() -> Served {
        let mut server = Server::bind(0).unwrap();
        server.add_source(Box::new(Growing::default()));
        assert_eq!(server.measure_all(), [""; 0]);
        let address = server.address();
        thread::spawn(move || server.run());
        let (host, token) = address.split_once("/?token=").unwrap();
        let port = host.rsplit_once(':').unwrap().1.parse().unwrap();
        Served { port, token: token.to_owned() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends the bytes, and reads to the end.
    fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may hang up in the middle of nonsense.
        let _ = stream.write_all(request);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let end =
            all.windows(4).position(|window| window == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
        let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head, body: all[end..].to_vec() }
    }

    fn ask(&self, line: &str, headers: &[String]) -> Answer {
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        self.raw(format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes())
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}", self.port)
    }

    fn cookie(&self) -> String {
        format!("Cookie: about-memory-{}={}", self.port, self.token)
    }

    fn origin(&self) -> String {
        format!("Origin: http://127.0.0.1:{}", self.port)
    }

    /// Sends a request in the way the page does.
    fn asked(&self, line: &str) -> Answer {
        self.ask(line, &[self.host(), self.cookie(), self.origin()])
    }

    fn json(&self, line: &str) -> Value {
        let answer = self.asked(line);
        assert_eq!(answer.status, 200, "{line}: {}", String::from_utf8_lossy(&answer.body));
        let mut text = String::new();
        GzDecoder::new(&answer.body[..]).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

#[test]
fn the_token_becomes_a_cookie_and_leaves_the_address() {
    let served = Served::start();
    let answer = served.ask(&format!("GET /?token={}", served.token), &[served.host()]);
    assert_eq!(answer.status, 303);
    assert!(answer.head.contains("location: /\r\n"), "{}", answer.head);
    let cookie = format!(
        "set-cookie: about-memory-{}={}; path=/; httponly; samesite=strict\r\n",
        served.port, served.token
    );
    assert!(answer.head.contains(&cookie), "{}", answer.head);
    let page = served.asked("GET /");
    assert_eq!(page.status, 200);
    assert!(!String::from_utf8_lossy(&page.body).contains(&served.token), "the page has the token");
    for header in [
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "referrer-policy: no-referrer",
        "content-type: text/html",
    ] {
        assert!(page.head.contains(header), "{header} is not in\n{}", page.head);
    }
    assert!(!page.head.contains("unsafe-inline"));
}

#[test]
fn nobody_else_is_let_in() {
    let served = Served::start();
    let (host, cookie, origin) = (served.host(), served.cookie(), served.origin());
    let evil = "Origin: https://evil.example".to_owned();
    let cross = "Sec-Fetch-Site: cross-site".to_owned();
    let table: [(&str, &[&String], u16); 9] = [
        ("GET /", &[&host], 401),
        ("GET /moments", &[&host], 401),
        ("GET /moments", &[&cookie], 403),
        ("GET /moments", &[&format!("Host: evil.example:{}", served.port), &cookie], 403),
        ("GET /moments", &[&host, &cookie, &cross], 403),
        ("GET /moments", &[&host, &cookie, &evil], 403),
        ("POST /minimize/0", &[&host, &origin], 401),
        ("POST /minimize/0", &[&host, &cookie], 403),
        ("POST /minimize/0", &[&host, &cookie, &evil], 403),
    ];
    let before = served.json("GET /moments");
    for (line, headers, status) in table {
        let headers: Vec<String> = headers.iter().map(|header| (*header).clone()).collect();
        let answer = served.ask(line, &headers);
        assert_eq!(answer.status, status, "{line} {headers:?}");
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
    assert_eq!(served.json("GET /moments"), before, "something was measured");
}

#[test]
fn a_program_is_measured_and_minimized_from_the_page() {
    let served = Served::start();
    assert_eq!(served.json("POST /measure/0"), json!({"moment": 1}));
    assert_eq!(served.json("POST /minimize/0"), json!({"moment": 2}));
    let all = served.json("GET /moments");
    assert_eq!(all["sources"], json!([{"id": 0, "name": "growing (pid 7)"}]));
    let figures: Vec<&Value> =
        all["moments"].as_array().unwrap().iter().map(|moment| &moment["figures"]).collect();
    assert_eq!(figures.len(), 3);
    assert_eq!(figures[1]["explicit"], 2.0);
    assert_eq!(figures[1]["heap-unclassified"], 1.0);
    assert_eq!(figures[2]["heap-allocated"], 200.0);
    let reports = served.json("GET /moments/2/reports");
    assert_eq!(reports["reports"][0]["amount"], 100);
    let difference = served.json("GET /differences/1/2");
    assert_eq!(difference["reports"][0]["amount"], 99);
    let file = served.asked("GET /moments/2/file");
    assert!(
        file.head.contains("content-disposition: attachment; filename=\"memory-report-2.json.gz\"")
    );
    let mut text = String::new();
    GzDecoder::new(&file.body[..]).read_to_string(&mut text).unwrap();
    assert!(text.contains("\"heap-allocated\""), "{text}");
}

#[test]
fn tracking_begins_and_ends_from_the_page_and_dumps_are_saved() {
    let served = Served::start();
    let sheets = |moment: usize| served.json("GET /moments")["moments"][moment]["sheets"].clone();
    assert_eq!(served.json("POST /track/0"), json!({"moment": 1}));
    assert_eq!(sheets(1), json!(["dark", "heap", "coverage"]));
    let heap = served.json("GET /moments/1/heap");
    assert_eq!(heap["rows"]["bytes"], json!([32]));
    assert_eq!(served.json("GET /moments/1/findings")["pieces"], json!(["heap", "census"]));
    let census = served.json("GET /moments/1/census");
    assert_eq!(census["rows"]["bytes"], json!([32]));
    let file = served.asked("GET /moments/1/dump");
    assert!(file.head.contains("filename=\"memory-report-1.dmd.json.gz\""), "{}", file.head);
    let mut text = String::new();
    GzDecoder::new(&file.body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, DUMP);
    assert_eq!(served.json("POST /untrack/0"), json!({"moment": 2}));
    assert_eq!(sheets(2), json!([]));
    for (line, words) in [
        ("GET /moments/1/types", "this dump has no such part"),
        ("GET /moments/2/dump", "no dump of DMD lies beside this report"),
        ("GET /recordings/0", "There is no such recording here."),
        ("POST /measure-anonymized/0", "this program cannot leave private words out"),
    ] {
        let answer = served.asked(line);
        assert_eq!(answer.status, 422, "{line}");
        assert_eq!(String::from_utf8_lossy(&answer.body).trim(), words, "{line}");
    }
    for line in ["GET /track/0", "GET /untrack/0", "GET /measure-anonymized/0"] {
        assert_eq!(served.asked(line).status, 404, "{line}");
    }
}

#[test]
fn what_is_not_there_is_said_in_a_sentence() {
    let served = Served::start();
    for (line, status, words) in [
        ("GET /nothing", 404, "There is no such page here."),
        ("GET /../../etc/passwd", 404, "There is no such page here."),
        ("GET /%2e%2e/%2e%2e/etc/passwd", 404, "There is no such page here."),
        ("GET /moments/9/reports", 422, "This moment is not kept: reload the page."),
        (
            "GET /moments/0/findings",
            422,
            "no dump of DMD lies beside this report, nor does it say what is resident",
        ),
        ("POST /measure/1", 422, "There is no such program here: reload the page."),
        ("DELETE /moments/0", 405, "Only GET and POST are known here."),
    ] {
        let answer = served.asked(line);
        assert_eq!(answer.status, status, "{line}");
        assert_eq!(String::from_utf8_lossy(&answer.body).trim(), words, "{line}");
    }
}

#[test]
fn nonsense_and_excess_end_their_own_connection_only() {
    let served = Served::start();
    let host = served.host();
    let cookie = served.cookie();
    let origin = served.origin();
    let long = format!("GET /{} HTTP/1.1\r\n{host}\r\n\r\n", "x".repeat(1 << 20));
    let many: String = (0..5000).map(|number| format!("X-{number}: y\r\n")).collect();
    let body = format!(
        "POST /measure/0 HTTP/1.1\r\n{host}\r\n{cookie}\r\n{origin}\r\nContent-Length: 99999999999\r\n\r\n"
    );
    for (request, wanted) in [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), 400),
        (b"\0\0\0\0\r\n\r\n".to_vec(), 400),
        (b"GET / HTTP/9.9\r\n\r\n".to_vec(), 400),
        (long.into_bytes(), 431),
        (format!("GET / HTTP/1.1\r\n{host}\r\n{many}\r\n").into_bytes(), 431),
        (body.into_bytes(), 413),
    ] {
        let answer = served.raw(&request);
        let shown: String = String::from_utf8_lossy(&request).chars().take(40).collect();
        // Who sends on after an answer may have lost it: the connection is reset.
        let is_lost = answer.status == 0 && request.len() > 16_000;
        assert!(is_lost || answer.status == wanted, "{shown:?}: {}", answer.head);
    }
    assert_eq!(served.json("GET /moments")["moments"].as_array().unwrap().len(), 1);
}

#[test]
fn who_is_slow_keeps_nobody_waiting() {
    let served = Served::start();
    let slow: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = served.connect();
            stream.write_all(b"GET /moments HT").unwrap();
            stream
        })
        .collect();
    let start = Instant::now();
    assert_eq!(served.asked("GET /").status, 200);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop(slow);
}
