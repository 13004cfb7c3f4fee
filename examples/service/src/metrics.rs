//! The metrics of `memreport::metrics`, as axum answers with them.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use memreport::metrics;
use tokio::task::spawn_blocking;

/// `/metrics`
pub(crate) async fn scrape() -> Response {
    // Reporters are asked, and what they measure may be big.
    match spawn_blocking(metrics::gather).await {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
