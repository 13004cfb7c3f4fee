//! The profiles of `dmd::pprof`, as axum answers with them.

use axum::extract::RawQuery;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::task::spawn_blocking;

/// `/debug/pprof/heap`
pub(crate) async fn heap(RawQuery(query): RawQuery) -> Response {
    respond(query, dmd::pprof::heap).await
}

/// `/debug/pprof/allocs`
pub(crate) async fn allocs(RawQuery(query): RawQuery) -> Response {
    respond(query, dmd::pprof::allocs).await
}

async fn respond(query: Option<String>, profile: fn(&str) -> dmd::pprof::Response) -> Response {
    let query = query.unwrap_or_default();
    // It may take a second, and with `seconds=N` it takes that long.
    match spawn_blocking(move || profile(&query)).await {
        Ok(answer) => {
            let status =
                StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, [(header::CONTENT_TYPE, answer.content_type)], answer.body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
