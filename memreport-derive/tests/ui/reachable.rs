//! Refuses what has no effect on a field that is measured by following pointers.
use memreport::{MallocSizeOf, Ops};

#[derive(MallocSizeOf)]
struct Page {
    #[malloc_size_of(reachable = "yes")]
    first: Foreign,
    #[malloc_size_of(reachable, part)]
    second: Foreign,
    #[malloc_size_of(reachable, shared = here)]
    third: Foreign,
    #[malloc_size_of(with = measure, reachable)]
    fourth: Foreign,
    #[malloc_size_of(shallow, reachable)]
    fifth: Vec<u8>,
    #[malloc_size_of(ignore = "no", reachable)]
    sixth: Foreign,
    #[malloc_size_of(reachable, reachable)]
    seventh: Foreign,
}

struct Foreign;

fn measure<'a>(_: &'a Foreign, _: &Ops<'a>) {}

fn main() {}
