//! The workload under dhat: 10 frames of each stack, or all of them with `$DHAT_FRAMES=all`.

use std::error::Error;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let all = std::env::var_os("DHAT_FRAMES").is_some_and(|frames| frames == "all");
    // In testing mode, dhat writes no file.
    let profiler = dhat::Profiler::builder().testing();
    let profiler = if all { profiler.trim_backtraces(None) } else { profiler };
    let _profiler = profiler.build();
    memreport_workload::run()
}
