//! A web service that keeps pages, and shows its heap: `DMD=--mode=profile service [ADDRESS]`.
//!
//! | | |
//! |---|---|
//! | `/pages/N` | keeps N pages more |
//! | `/metrics` | for Prometheus: figures of the process, and the bytes of each reporter |
//! | `/debug/pprof/heap`, `/debug/pprof/allocs` | for `go tool pprof`, Pyroscope, Parca |

mod metrics;
mod pages;
mod profile;

use std::error::Error;
use std::io::{self, Write};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

dmd::global_allocator!();

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        // With port 0 the system chooses the port, so print it.
        let mut out = io::stdout();
        writeln!(out, "http://{}", listener.local_addr()?)?;
        out.flush()?;
        axum::serve(listener, service()).await?;
        Ok(())
    })
}

fn service() -> Router {
    Router::new()
        .route("/pages/{count}", get(|Path(count): Path<usize>| async move { pages::keep(count) }))
        .route("/metrics", get(metrics::scrape))
        .route("/debug/pprof/heap", get(profile::heap))
        .route("/debug/pprof/allocs", get(profile::allocs))
}
