//! Tests that a hundred types of random shape measure all they own, over jemalloc.

mod values;

dmd::global_allocator!(tikv_jemallocator::Jemalloc);
