//! Serves files over HTTP on the loopback, for pages that do not open from a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::failure::Failure;

/// The served files: single files by their paths, and otherwise the contents of a folder.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) files: BTreeMap<&'static str, PathBuf>,
    pub(crate) texts: BTreeMap<&'static str, &'static str>,
}

/// Serves files until the program ends, and returns the address.
pub(crate) fn serve(files: Files) -> Result<String, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
    let files = Arc::new(files);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let files = Arc::clone(&files);
            // A closed page sends no more requests.
            thread::spawn(move || answer(stream, &files).ok());
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, files: &Files) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let body = match (files.texts.get(path), files.files.get(path), &files.folder) {
        (Some(text), ..) => Some(text.as_bytes().to_vec()),
        (_, Some(file), _) => fs::read(file).ok(),
        (.., Some(folder)) if !path.contains("..") => {
            fs::read(folder.join(path.trim_start_matches('/'))).ok()
        }
        _ => None,
    };
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let body = body.unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        media_type(path),
        body.len()
    )?;
    stream.write_all(&body)
}

fn media_type(path: &str) -> &'static str {
    match Path::new(path).extension().and_then(|ending| ending.to_str()) {
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}
