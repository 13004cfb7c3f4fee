//! Refuses invalid bounds and paths of the crate.
use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(bound)]
struct First<T>(T);

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = T)]
struct Second<T>(T);

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = "T Clone")]
struct Third<T>(T);

#[derive(MallocSizeOf)]
#[malloc_size_of(crate = "memreport")]
struct Fourth<T>(T);

#[derive(MallocSizeOf)]
#[malloc_size_of(bound = "T: Clone", bound = "T: Copy")]
struct Fifth<T>(T);

fn main() {}
