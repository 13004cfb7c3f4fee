//! Serves its own metrics over HTTP, all from one snapshot, until its standard input ends.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

use memreport::{Units, distinguished, metrics};

dmd::global_allocator!();

static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

memreport::reporter!("explicit/a \"quoted\" http:\\\\path", WORDS, "The words.");

fn main() -> Result<(), Box<dyn Error>> {
    distinguished::register("kept-words", Units::Count, "Words that are kept.", || {
        Some(i64::try_from(WORDS.try_lock().ok()?.len()).unwrap_or(i64::MAX))
    })?
    .forever();
    if let Ok(mut words) = WORDS.lock() {
        words.extend((0..1000).map(|number| format!("word {number}")));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    let text = metrics::gather();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that disconnects early does no harm.
            let _ = answer(stream, &text);
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Sends the same text to every client.
fn answer(mut stream: TcpStream, text: &str) -> io::Result<()> {
    let head = BufReader::new(&stream).lines().map_while(Result::ok);
    head.take_while(|line| !line.is_empty()).for_each(drop);
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        metrics::CONTENT_TYPE,
        text.len()
    )
}
