//! Refuses structs of named amounts that cannot be generated.

use memreport::MallocSizeOf;

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = NothingSizes)]
struct Nothing {
    text: String,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = "QuotedSizes")]
struct Quoted {
    #[malloc_size_of(part)]
    text: String,
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = UnnamedSizes)]
struct Unnamed(
    #[malloc_size_of(part)] String,
    #[malloc_size_of(part = "of/two")] String,
    #[malloc_size_of(part = "rest")] String,
);

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = EitherSizes)]
enum Either {
    Left(#[malloc_size_of(part = "left")] String),
}

#[derive(MallocSizeOf)]
#[malloc_size_of(sizes = GenericSizes)]
struct Generic<T> {
    #[malloc_size_of(part)]
    value: Vec<T>,
}

fn main() {}
