//! A server of three kinds of requests in scopes, which keep known bytes on any thread.

use std::sync::Mutex;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

dmd::global_allocator!();

/// The blocks that requests of each kind keep.
static KEPT: [Mutex<Vec<Vec<u8>>>; 3] = [const { Mutex::new(Vec::new()) }; 3];

const KINDS: [(&str, usize); 3] = [("search", 3000), ("store", 10_000), ("list", 500)];

/// Requests of each kind.
const REQUESTS: usize = 500;

/// Serves one request: it allocates before and after an await, and in an inner scope, and sends
/// blocks to another task.
async fn request(kind: usize, size: usize, elsewhere: UnboundedSender<Vec<u8>>) {
    let first = vec![1_u8; size];
    let _ = elsewhere.send(vec![2_u8; size]);
    tokio::task::yield_now().await;
    let second = {
        memreport::scope!("index");
        vec![3_u8; size]
    };
    let mut kept = KEPT[kind].lock().expect("nobody panics");
    if kept.capacity() == 0 {
        kept.reserve_exact(2 * REQUESTS);
    }
    kept.extend([first, second]);
}

async fn serve() {
    let (elsewhere, mut blocks) = unbounded_channel::<Vec<u8>>();
    let frees = tokio::spawn(async move { while blocks.recv().await.is_some() {} });
    let mut tasks = Vec::with_capacity(KINDS.len() * REQUESTS);
    for _ in 0..REQUESTS {
        for (kind, (name, size)) in KINDS.into_iter().enumerate() {
            let request = request(kind, size, elsewhere.clone());
            tasks.push(tokio::spawn(memreport::in_scope(name, request)));
        }
    }
    for task in tasks {
        let _ = task.await;
    }
    drop(elsewhere);
    let _ = frees.await;
}

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    runtime.block_on(serve());
    let path = std::env::args().nth(1).unwrap_or_else(|| "scoped.json".to_owned());
    memreport::snapshot().save(path)
}
