//! A program whose spans are OpenTelemetry's: it saves its dump, and prints what it kept in each
//! span, with the identifiers that OpenTelemetry gives it: `traced_program FILE`.
//!
//! Each line is the names of the scopes, the trace, the span and the usable bytes. Blocks of a
//! trace that is not sampled have a scope, and no identifiers: `-`. All of these blocks have more
//! than 1,000 bytes, unlike the program's other ones.

use std::error::Error;
use std::io::{self, Write};

use memreport::{ScopeLayer, SpanIds};
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

dmd::global_allocator!();

/// The requests, each a trace of its own.
const REQUESTS: usize = 12;

/// The blocks that were kept in a span.
struct Kept {
    scope: &'static str,
    ids: Option<SpanIds>,
    blocks: Vec<Vec<u8>>,
}

impl Kept {
    /// Keeps blocks of these sizes, in the current span.
    fn new(scope: &'static str, sizes: &[usize]) -> Self {
        let blocks = sizes.iter().map(|size| vec![1_u8; *size]).collect();
        Kept { scope, ids: current_ids(), blocks }
    }
}

/// Returns the identifiers of the current span, if its trace is sampled.
fn current_ids() -> Option<SpanIds> {
    let context = Span::current().context();
    let span = context.span().span_context().clone();
    let ids = SpanIds { trace: span.trace_id().to_bytes(), span: span.span_id().to_bytes() };
    span.is_sampled().then_some(ids)
}

/// Serves a request in spans within spans, one of them on another thread.
fn serve(number: usize, kept: &mut Vec<Kept>) {
    let request = info_span!("request", number);
    let search = request.in_scope(|| {
        kept.push(Kept::new("request", &[1001 + number, 3001]));
        {
            memreport::scope!("parse");
            kept.push(Kept::new("request > parse", &[5001 + number]));
        }
        info_span!("search")
    });
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    let found = std::thread::scope(|scope| {
        let work = || {
            tracing::dispatcher::with_default(&dispatch, || {
                search.in_scope(|| Kept::new("request > search", &[7001, 9001 + number]))
            })
        };
        scope.spawn(work).join()
    });
    kept.extend(found);
    // Entered again.
    search.in_scope(|| kept.push(Kept::new("request > search", &[11_001])));
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("traced_program FILE")?;
    let mut kept = Vec::with_capacity(8 * REQUESTS);
    // Every other program samples some of its traces: here the second half is not.
    for sampler in [Sampler::AlwaysOn, Sampler::AlwaysOff] {
        let provider = SdkTracerProvider::builder().with_sampler(sampler).build();
        let telemetry = tracing_opentelemetry::layer().with_tracer(provider.tracer("traced"));
        let scopes = ScopeLayer::default().with_span_ids(|_| current_ids());
        let subscriber = tracing_subscriber::registry().with(telemetry).with(scopes);
        tracing::subscriber::with_default(subscriber, || {
            (0..REQUESTS / 2).for_each(|number| serve(number, &mut kept));
        });
    }
    memreport::snapshot().save(&file)?;
    let mut out = io::stdout();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for Kept { scope, ids, blocks } in &kept {
        let (trace, span) =
            ids.map_or(("-".to_owned(), "-".to_owned()), |ids| (hex(&ids.trace), hex(&ids.span)));
        let bytes: usize = blocks.iter().map(|block| memreport::measure(block).bytes).sum();
        writeln!(out, "{scope}\t{trace}\t{span}\t{bytes}")?;
    }
    Ok(())
}
