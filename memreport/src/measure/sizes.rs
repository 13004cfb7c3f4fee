//! A struct of named amounts for a measured type: what each of its parts owns, as a field.

use super::measured::Measured;
use super::size_of::{MallocSizeOf, measure};

/// Has a struct of named amounts, one for each part: derived by `#[malloc_size_of(sizes = PageSizes)]`.
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
/// # let page = |length| Page { text: "a".repeat(length), links: vec![String::new()], title: "Page".to_owned() };
/// let mut all = PageSizes::default();
/// for page in [page(1000), page(2000)] {
///     all += memreport::sizes_of(&page);
/// }
/// assert!(all.text >= 3000 && all.links >= 2 * 24 && all.rest >= 8);
/// assert_eq!(all.total(), all.text + all.links + all.rest);
/// ```
pub trait HasSizes: MallocSizeOf {
    /// The struct of named amounts.
    type Sizes;

    /// The amounts of a measurement of this type.
    fn sizes(measured: &Measured) -> Self::Sizes;
}

/// Measures the heap that each part of `value` owns. Marks nothing, as [`measure`].
pub fn sizes_of<T: HasSizes>(value: &T) -> T::Sizes {
    T::sizes(&measure(value))
}
