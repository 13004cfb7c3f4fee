//! Serves the agent's own metrics over HTTP.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::metrics::Metrics;
use super::spool::Spool;

/// The time within which a request must arrive.
const REQUEST: Duration = Duration::from_secs(5);

/// Starts a thread that serves `/metrics`. Returns the address with its port.
pub(super) fn start(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    spool: Arc<Spool>,
) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(address)
        .map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = move || {
        // Without its metrics the agent goes on.
        let _ = runtime.block_on(serve(listener, metrics, spool));
    };
    thread::Builder::new().name("metrics".to_owned()).spawn(serve)?;
    Ok(bound)
}

async fn serve(
    listener: std::net::TcpListener,
    metrics: Arc<Metrics>,
    spool: Arc<Spool>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (metrics, spool) = (Arc::clone(&metrics), Arc::clone(&spool));
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let is_known = request.uri().path() == "/metrics" && request.method() == Method::GET;
            let text = if is_known { metrics.text(&spool) } else { String::new() };
            async move { Ok::<_, Infallible>(answer(is_known, text)) }
        });
        let mut connection = http1::Builder::new();
        connection.timer(TokioTimer::new()).header_read_timeout(REQUEST).keep_alive(false);
        let connection = connection.serve_connection(TokioIo::new(stream), service);
        // One at a time: a scrape is a matter of microseconds. A slow client is cut off.
        let _ = tokio::time::timeout(REQUEST, connection).await;
    }
}

fn answer(is_known: bool, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    if is_known {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
