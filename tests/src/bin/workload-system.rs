//! The workload on the system's allocator alone.

fn main() -> std::io::Result<()> {
    memreport_tests::workload::run()
}
