//! Accepts connections, passes requests through the gate, and sends the answers.

use super::answer::{Answer, Library};
use super::gate::{Gate, Verdict};
use crate::error::Failure;
use crate::render::page::document;
use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// The time within which the head of a request must arrive, so that a silent client does not keep a
/// connection.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest head of a request, in bytes.
const HEAD: usize = 16 << 10;
/// The largest number of connections; later ones wait.
const CONNECTIONS: usize = 256;

struct Server {
    gate: Gate,
    library: Library,
}

/// Serves until the process ends.
pub(super) async fn serve(
    listener: TcpListener,
    gate: Gate,
    library: Library,
) -> Result<(), Failure> {
    let server = Arc::new(Server { gate, library });
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned().await?;
        let Ok((stream, _)) = listener.accept().await else {
            // The process may have too many open files. Wait until some are closed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            connection(server, stream).await;
            drop(place);
        });
    }
}

async fn connection(server: Arc<Server>, stream: TcpStream) {
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(respond(server, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // Errors of one client do not concern the others.
    drop(served);
}

async fn respond(server: Arc<Server>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let answer = match server.gate.judge(&method, &uri, request.headers()) {
        Verdict::Refuse(status, why) => Answer::Fault(status, why),
        Verdict::Welcome => return welcome(&server.gate),
        Verdict::Pass if request.body().size_hint().upper() != Some(0) => {
            Answer::Fault(StatusCode::PAYLOAD_TOO_LARGE, "No request here has a body.".into())
        }
        Verdict::Pass => {
            let path = uri.path().to_owned();
            let asked = method.clone();
            // Measuring and reading are slow: run them on another thread.
            let work = tokio::task::spawn_blocking(move || server.library.answer(&asked, &path));
            work.await.unwrap_or_else(|_| {
                let words = "about-memory failed at this; the page itself goes on.";
                Answer::Fault(StatusCode::INTERNAL_SERVER_ERROR, words.into())
            })
        }
    };
    let mut response = response(answer);
    if method == Method::HEAD {
        *response.body_mut() = Full::default();
    }
    response
}

/// Moves the token from the address to a cookie.
fn welcome(gate: &Gate) -> Response<Full<Bytes>> {
    let mut response = bare(StatusCode::SEE_OTHER, Vec::new());
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    if let Ok(cookie) = HeaderValue::from_str(&gate.cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let (status, body, media, more) = match answer {
        Answer::Page(page) => {
            let policy = format!("{}; frame-ancestors 'none'", document::policy());
            let policy = (header::CONTENT_SECURITY_POLICY, policy);
            (StatusCode::OK, page, "text/html; charset=utf-8", Some(policy))
        }
        Answer::Json(json) => {
            let gzip = (header::CONTENT_ENCODING, "gzip".to_owned());
            (StatusCode::OK, json, "application/json", Some(gzip))
        }
        Answer::File(bytes, name) => {
            let save = (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""));
            (StatusCode::OK, bytes, "application/gzip", Some(save))
        }
        Answer::Fault(status, words) => {
            (status, format!("{words}\n").into_bytes(), "text/plain; charset=utf-8", None)
        }
    };
    let mut response = bare(status, body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    if let Some((name, value)) = more
        && let Ok(value) = HeaderValue::from_str(&value)
    {
        headers.insert(name, value);
    }
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Makes a response with the headers that all have: no cache, no content sniffing, no frames.
fn bare(status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
