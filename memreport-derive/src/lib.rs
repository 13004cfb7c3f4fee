//! `#[derive(MallocSizeOf)]` for the crate `memreport`.

mod errors;
mod attr;
mod ast;
mod bounds;
mod expand;
mod sizes;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Measures a type field by field: all heap that its fields own.
///
/// For structs, tuple structs, unit structs and enums, generic and recursive ones too.
///
/// ```
/// use memreport::MallocSizeOf;
///
/// #[derive(MallocSizeOf)]
/// struct Page {
///     title: String,
///     links: Vec<String>,
///     /// What the page looks like. Drawn anew when it is missing.
///     #[malloc_size_of(part)]
///     picture: Option<Box<[u8]>>,
///     #[malloc_size_of(ignore = "owned by the window")]
///     window: *const u8,
/// }
///
/// let page = Page {
///     title: "Home".to_owned(),
///     links: Vec::new(),
///     picture: Some(vec![0; 4000].into()),
///     window: std::ptr::null(),
/// };
/// let measured = memreport::measure(&page);
/// assert_eq!(measured.blocks, 2);
/// assert_eq!(measured.parts[0].path, "picture");
/// assert!(measured.parts[0].bytes >= 4000);
/// assert_eq!(memreport::skipped_fields()[0].reason, "owned by the window");
/// ```
///
/// # On a field
///
/// * `#[malloc_size_of(ignore = "why")]`: not measured. The reasons are listed by `memreport::skipped_fields`.
/// * `#[malloc_size_of(with = path)]`: measured by a function `for<'a> fn(&'a Field, &Ops<'a>)`, for types of other crates.
/// * `#[malloc_size_of(shallow)]`: the container's own blocks only, without what its elements own.
/// * `#[malloc_size_of(shared = first)]`, `here` or `elsewhere`: who counts the blocks behind an `Rc` or `Arc`: whoever comes
///   first in a collection, as without the attribute; this field, always; or another owner, so that this field never does.
/// * `#[malloc_size_of(part)]` or `part = "name"`: reported by that name, below the path of the whole value. The first
///   sentence of the field's doc comment is the description.
///
/// # On the type
///
/// * `#[malloc_size_of(bound = "T: Trait")]`: the bounds of the impl, instead of the inferred ones. Inferred is `T: MallocSizeOf`
///   for each type parameter (and `T::Item: MallocSizeOf` for each associated type) in the type of a measured field, unless it
///   owns nothing there, as behind `&` and `PhantomData`, or as the hasher of a map.
/// * `#[malloc_size_of(sizes = PageSizes)]`: writes a struct of that name with a field for each part, in bytes, and `rest`;
///   `memreport::sizes_of` fills it. For structs without parameters.
/// * `#[malloc_size_of(crate = path)]`: where `memreport` is found, if it is renamed or re-exported.
#[proc_macro_derive(MallocSizeOf, attributes(malloc_size_of))]
pub fn derive_malloc_size_of(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::derive(&input).into()
}
