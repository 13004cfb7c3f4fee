//! Tests that a hundred types of random shape measure all they own, over the system's allocator.

mod values;

dmd::global_allocator!();
