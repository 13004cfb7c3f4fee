//! The workload with DMD, asleep or awake as `$DMD` says.

dmd::global_allocator!();

fn main() -> std::io::Result<()> {
    memreport_tests::workload::run()
}
