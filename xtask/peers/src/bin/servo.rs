//! The workload on Servo's tracking allocator, which the crate declares itself.

use std::error::Error;

use servo_allocator as _;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    memreport_workload::run()
}
