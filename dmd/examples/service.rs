//! A service with worker threads that shows its heap while it runs: at the socket of
//! `about-memory`, and as a pprof profile over HTTP.
//!
//! Run it with `cargo run -p memreport-dmd --example service --features pprof`. It requests its own
//! profile and ends. `examples/service` of the repository is a web service with axum and tokio.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::{io, thread};

dmd::global_allocator!();

/// The pages that the workers have rendered.
static CACHE: Mutex<Vec<String>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/cache", CACHE, "Rendered pages.");

fn main() -> Result<(), Box<dyn Error>> {
    // A sample of the blocks, as in production. Usually the user sets `DMD=--mode=profile`.
    dmd::start("--mode=profile --sample-bytes=64K".parse()?)?;
    // From now on `about-memory ps` lists this program, and `about-memory snapshot PID` works.
    memreport::serve()?;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    println!("process {}, http://{address}/debug/pprof/heap", std::process::id());
    start_workers(listener)?;

    for number in 0..4 {
        get(address, &format!("/pages/{number}"))?;
    }
    // `debug=1` requests a text. Without it, the answer is a profile for `go tool pprof`.
    let profile = get(address, "/debug/pprof/heap?debug=1")?;
    for line in profile.lines().take(20) {
        println!("{line}");
    }
    Ok(())
}

/// Starts the threads that answer requests.
fn start_workers(listener: TcpListener) -> io::Result<()> {
    let (sender, receiver) = mpsc::channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..2 {
        let receiver = Arc::clone(&receiver);
        let work = move || loop {
            let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(stream) = next else { return };
            // An error concerns one connection only.
            let _ = answer(stream);
        };
        thread::Builder::new().name(format!("worker-{number}")).spawn(work)?;
    }
    let accept = move || {
        for stream in listener.incoming().flatten() {
            if sender.send(stream).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("accept".to_owned()).spawn(accept)?;
    Ok(())
}

/// Answers one request.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path == "/debug/pprof/heap" {
        // Takes milliseconds to seconds, so it is work for a thread that may block.
        let response = dmd::pprof::heap(query);
        write_response(&mut stream, response.status, response.content_type, &response.body)
    } else {
        let page = format!("You are at {path}. ").repeat(10_000);
        CACHE.lock().unwrap_or_else(PoisonError::into_inner).push(page.clone());
        write_response(&mut stream, 200, "text/plain", page.as_bytes())
    }
}

fn write_response(out: &mut impl Write, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(out, "HTTP/1.0 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n")?;
    out.write_all(body)
}

/// Requests a target, and returns the body.
fn get(address: std::net::SocketAddr, target: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {target} HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}
