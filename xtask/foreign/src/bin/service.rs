//! An async service: an HTTP server whose clients fill a store of JSON and query it.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use foreign::Counted;
use serde_json::{Value, json};
use tokio::sync::RwLock;

dmd::global_allocator!((Counted): Counted);

type Store = Arc<RwLock<HashMap<u64, Value>>>;

async fn put(State(store): State<Store>, Path(key): Path<u64>, Json(value): Json<Value>) {
    store.write().await.insert(key, value);
}

async fn find(State(store): State<Store>, Path(key): Path<u64>) -> Json<Value> {
    Json(store.read().await.get(&key).cloned().unwrap_or_default())
}

/// Sends a request over an open connection and returns the length of the answer's body.
fn request(stream: &mut TcpStream, method: &str, key: u64, body: &str) -> io::Result<usize> {
    let length = body.len();
    let head = format!(
        "{method} /{key} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes())?;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    loop {
        let read = stream.read(&mut part)?;
        answer.extend_from_slice(&part[..read]);
        let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        if answer.len() >= end + 4 + length {
            return Ok(length);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listener =
        runtime.block_on(tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))))?;
    let address = listener.local_addr()?;
    let service = Router::new()
        .route("/{key}", post(put))
        .route("/{key}", get(find))
        .with_state(Store::default());
    runtime.spawn(async { axum::serve(listener, service).await });
    let mut stream = TcpStream::connect(address)?;
    let mut round = |number: u64| -> io::Result<()> {
        for step in 0..2000 {
            let key = (number * 977 + step * 13) % 20_000;
            let list: Vec<u64> = (0..20).map(|entry| entry * step).collect();
            let value = json!({ "key": key, "text": format!("text {step}"), "list": list });
            request(&mut stream, "POST", key, &value.to_string())?;
            request(&mut stream, "GET", key / 2, "")?;
        }
        Ok(())
    };
    foreign::work(|number| {
        if let Err(error) = round(number) {
            panic!("the service fails: {error}");
        }
    })?;
    Ok(())
}
