//! A server of three kinds of requests under load, which declares them by scopes or by spans:
//! `requests scopes REPORT`.
//!
//! A block's size encodes the kind of its request, so that a dump can be checked. The program
//! prints the requested bytes of each kind. `requests cost` prints the cost of entering a scope.

use std::collections::VecDeque;
use std::error::Error;
use std::future::Future;
use std::hint::black_box;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use memreport::ScopeLayer;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{Instrument, info_span};
use tracing_subscriber::layer::SubscriberExt;

dmd::global_allocator!();

/// The kinds, in the order of their numbers.
const KINDS: [&str; 3] = ["search", "store", "list"];

/// Requests of each kind.
const REQUESTS: usize = 1000;

/// The requested bytes of each kind.
static REQUESTED: [AtomicU64; KINDS.len()] = [const { AtomicU64::new(0) }; KINDS.len()];

/// Blocks that requests keep for later ones of any kind; the oldest is dropped.
static CACHE: Mutex<VecDeque<Vec<u8>>> = Mutex::new(VecDeque::new());

/// Returns the `step`th block of a request.
///
/// Its size is odd, unlike those of all other blocks of this program. Half of it, modulo three, is
/// the kind.
fn block(kind: usize, request: usize, step: usize) -> Vec<u8> {
    let third = 300 + (request * 7 + step * 31) % 500;
    let size = 2 * (3 * third + kind) + 1;
    REQUESTED[kind].fetch_add(size as u64, Relaxed);
    vec![1; size]
}

/// The API by which the program declares its scopes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Scopes,
    Spans,
}

impl Way {
    /// Makes `future` part of a request's work, or the request itself.
    fn within<F: Future + Send + 'static>(
        self,
        name: &'static str,
        future: F,
    ) -> std::pin::Pin<Box<dyn Future<Output = F::Output> + Send>> {
        match self {
            Way::Scopes => Box::pin(memreport::in_scope(name, future)),
            // Names of spans are fixed in the source.
            Way::Spans => Box::pin(future.instrument(match name {
                "search" => info_span!("search"),
                "store" => info_span!("store"),
                "list" => info_span!("list"),
                _ => info_span!("index"),
            })),
        }
    }
}

/// Serves one request: before and after awaits, in a task of its own, and on a thread for blocking
/// work. Blocks that it sends are freed elsewhere.
async fn request(way: Way, kind: usize, number: usize, elsewhere: UnboundedSender<Vec<u8>>) {
    let local = block(kind, number, 0);
    let _ = elsewhere.send(block(kind, number, 1));
    tokio::task::yield_now().await;
    let task = tokio::spawn(way.within("index", async move {
        let first = block(kind, number, 2);
        tokio::task::yield_now().await;
        (first, block(kind, number, 3))
    }));
    if number.is_multiple_of(16) {
        let blocking = match way {
            Way::Scopes => tokio::task::spawn_blocking(move || {
                let _scope = memreport::enter_scope(KINDS[kind]);
                block(kind, number, 4)
            }),
            Way::Spans => {
                let span = tracing::Span::current();
                tokio::task::spawn_blocking(move || span.in_scope(|| block(kind, number, 4)))
            }
        };
        drop(blocking.await);
    }
    let kept = block(kind, number, 5);
    let oldest = {
        let mut cache = CACHE.lock().expect("nobody panics");
        cache.push_back(kept);
        if cache.len() > 200 { cache.pop_front() } else { None }
    };
    drop((oldest, task.await, local));
}

async fn free(mut blocks: UnboundedReceiver<Vec<u8>>) {
    while blocks.recv().await.is_some() {}
}

async fn serve(way: Way) {
    let (elsewhere, blocks) = unbounded_channel();
    let frees = tokio::spawn(free(blocks));
    let mut tasks = Vec::with_capacity(KINDS.len() * REQUESTS);
    for number in 0..REQUESTS {
        for (kind, name) in KINDS.into_iter().enumerate() {
            let request = request(way, kind, number, elsewhere.clone());
            tasks.push(tokio::spawn(way.within(name, request)));
        }
    }
    for task in tasks {
        let _ = task.await;
    }
    drop(elsewhere);
    let _ = frees.await;
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (way, report) = match words[..] {
        ["scopes", report] => (Way::Scopes, report),
        ["spans", report] => (Way::Spans, report),
        ["cost"] => return Ok(cost()?),
        _ => return Err("requests scopes|spans REPORT, or requests cost".into()),
    };
    if way == Way::Spans {
        let subscriber = tracing_subscriber::registry().with(ScopeLayer::default());
        tracing::subscriber::set_global_default(subscriber)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build()?;
    runtime.block_on(serve(way));
    memreport::snapshot().save(report)?;
    let mut out = std::io::stdout();
    for (name, requested) in KINDS.iter().zip(&REQUESTED) {
        writeln!(out, "{name} {}", requested.load(Relaxed))?;
    }
    Ok(())
}

/// Prints the nanoseconds of entering and leaving by each API, as the least of several rounds.
fn cost() -> std::io::Result<()> {
    let registry = || tracing_subscriber::registry();
    let bare = tracing::Dispatch::new(registry());
    let layered = tracing::Dispatch::new(registry().with(ScopeLayer::default()));
    let with = |dispatch, call: &dyn Fn() -> f64| tracing::dispatcher::with_default(dispatch, call);
    let entered = || {
        let span = info_span!("span");
        nanoseconds(|| drop(black_box(span.enter())))
    };
    let made = || nanoseconds(|| drop(black_box(info_span!("span").entered())));
    let mut least = [f64::INFINITY; 7];
    for _ in 0..9 {
        let round = [
            nanoseconds(|| {
                memreport::scope!("scope");
                black_box(());
            }),
            nanoseconds(|| drop(black_box(memreport::enter_scope("scope")))),
            nanoseconds(|| {
                let future = memreport::in_scope("scope", std::future::ready(()));
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                let _ = black_box(std::pin::pin!(future).poll(&mut context));
            }),
            with(&bare, &entered),
            with(&layered, &entered),
            with(&bare, &made),
            with(&layered, &made),
        ];
        for (least, time) in least.iter_mut().zip(round) {
            *least = least.min(time);
        }
    }
    let names = [
        "scope!",
        "enter_scope",
        "in_scope, made and polled",
        "span entered, no layer",
        "span entered, layer",
        "span made and entered, no layer",
        "span made and entered, layer",
    ];
    let mut out = std::io::stdout();
    names.iter().zip(least).try_for_each(|(name, least)| writeln!(out, "{least:.1} {name}"))
}

/// Returns the nanoseconds of one call.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 100_000;
    let begin = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}
