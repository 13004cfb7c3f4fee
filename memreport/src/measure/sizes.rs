//! Defines a struct of named amounts for a measured type, with a field for each part.

use super::measured::Measured;
use super::size_of::{MallocSizeOf, measure};

/// A type with a struct of named amounts, one for each part. Derived by `#[malloc_size_of(sizes =
/// PageSizes)]`.
///
/// ```
/// use memreport::MallocSizeOf;
///
/// #[derive(MallocSizeOf)]
/// #[malloc_size_of(sizes = PageSizes)]
/// struct Page {
///     /// What there is to read.
///     #[malloc_size_of(part)]
///     text: String,
///     #[malloc_size_of(part)]
///     links: Vec<String>,
///     title: String,
/// }
///
/// # let page = |length| {
/// #     let text = "a".repeat(length);
/// #     Page { text, links: vec![String::new()], title: "Page".to_owned() }
/// # };
/// let mut all = PageSizes::default();
/// for page in [page(1000), page(2000)] {
///     all += memreport::sizes_of(&page);
/// }
/// assert!(all.text >= 3000 && all.links >= 2 * 24 && all.rest >= 8);
/// assert_eq!(all.total(), all.text + all.links + all.rest);
/// ```
pub trait HasSizes: MallocSizeOf {
    /// The struct of named amounts, in bytes.
    type Sizes;

    /// Converts a measurement of this type into named amounts.
    fn sizes(measured: &Measured) -> Self::Sizes;
}

/// Measures the heap that each part of `value` owns. Records no claims, like [`measure`].
pub fn sizes_of<T: HasSizes>(value: &T) -> T::Sizes {
    T::sizes(&measure(value))
}
