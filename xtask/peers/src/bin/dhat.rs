//! The workload under dhat: 10 frames of each stack, or with `$DHAT_FRAMES=all` all of them.

use std::error::Error;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let all = std::env::var_os("DHAT_FRAMES").is_some_and(|frames| frames == "all");
    // As a test, so that no file is left behind.
    let profiler = dhat::Profiler::builder().testing();
    let profiler = if all { profiler.trim_backtraces(None) } else { profiler };
    let _profiler = profiler.build();
    memreport_workload::run()
}
