//! The derive macros of the crate `memreport`: `#[derive(MallocSizeOf)]` measures the heap that a
//! type owns, field by field.
//!
//! Depend on `memreport`, which exports the macros with its feature `derive` (a default feature).
//! Derive one of them:
//!
//! | derive | adds |
//! |---|---|
//! | [`MallocSizeOf`] | the trait `MallocSizeOf`: everything that measuring needs |
//! | [`SizeOfExcludingThis`] | the same, under Mozilla's name |
//! | [`SizeOfIncludingThis`] | also `size_of_including_this` on its `Box`, `Rc` and `Arc` |
//!
//! ```
//! use memreport::MallocSizeOf;
//!
//! #[derive(MallocSizeOf)]
//! struct Words {
//!     all: Vec<String>,
//!     #[malloc_size_of(ignore = "static text")]
//!     language: &'static str,
//! }
//!
//! let words = Words { all: vec!["heap".to_owned()], language: "en" };
//! // One block for the vector, one for its text.
//! assert_eq!(memreport::measure(&words).blocks, 2);
//! ```
//!
//! The generated code visits each field in order. It has no cost beyond the size queries, needs no
//! names in scope, and reports mistakes in attributes at the attribute. See the table of attributes
//! at [`MallocSizeOf`].

mod errors;
mod attr;
mod doc_comment;
mod ast;
mod bounds;
mod expand;
mod sizes;

use expand::Traits;
use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `MallocSizeOf` field by field: a value owns the heap that its fields own.
///
/// For structs, tuple structs, unit structs and enums, also generic and recursive ones.
///
/// ```
/// use memreport::MallocSizeOf;
///
/// #[derive(MallocSizeOf)]
/// struct Page {
///     title: String,
///     links: Vec<String>,
///     /// The rendered page. Drawn again when it is missing.
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
/// # Attributes of a field
///
/// | `#[malloc_size_of(…)]` | effect |
/// |---|---|
/// | `ignore = "why"` | The field is not measured. `memreport::skipped_fields` lists the reasons. |
/// | `with = path` | A function `for<'a> fn(&'a Field, &Ops<'a>)` measures the field. |
/// | `shallow` | Only the container's own blocks count, without the blocks of its elements. |
/// | `reachable` | Under DMD, the blocks that pointers lead to count, as inferred; see below. |
/// | `shared = first` | The first owner that a collection visits counts the block. The default. |
/// | `shared = here` | This field always counts the block behind its `Rc` or `Arc`. |
/// | `shared = elsewhere` | Another owner counts the block; this field never does. |
/// | `part`, `part = "name"` | Its bytes are reported by name, below the path of the value. |
///
/// The description of a part is the first sentence of the field's doc comment. `with` is for types
/// of other crates.
///
/// `reachable` is for types of other crates that nothing measures. The value adds no bytes to a
/// measurement. In a snapshot under DMD, blocks that no reporter measures and to which the words of
/// the value lead, through other such blocks, are reported at `PATH/inferred/TYPE.FIELD`. They are
/// inferred: the value need not own all of them. Without DMD they stay unreported, which a note
/// states.
///
/// # Attributes of the type
///
/// | `#[malloc_size_of(…)]` | effect |
/// |---|---|
/// | `bound = "T: Trait"` | Replaces the inferred bounds of the impl. |
/// | `sizes = PageSizes` | Generates a struct with a field for each part, in bytes, and `rest`. |
/// | `crate = path` | Sets the path of `memreport`, if it is renamed or re-exported. |
///
/// `memreport::sizes_of` returns the generated struct. It is for types without parameters.
///
/// The inferred bounds are `T: MallocSizeOf` for each type parameter in the type of a measured
/// field, and `T::Item: MallocSizeOf` for each associated type. A parameter that owns nothing there
/// is not bounded: behind `&` and `PhantomData`, or as the hasher of a map. A field that is a
/// pointer to a function, or an `Option` of one, owns nothing and needs no bound.
///
/// # Errors
///
/// A misplaced, repeated or unknown attribute is a compile error at that attribute, and so is a
/// packed struct or a union.
#[proc_macro_derive(MallocSizeOf, attributes(malloc_size_of))]
pub fn derive_malloc_size_of(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::derive(&input, Traits::Excluding).into()
}

/// Implements `MallocSizeOf` under Mozilla's name for it.
///
/// Writes the impl of [`MallocSizeOf`], with the same attributes. Every type with `MallocSizeOf`
/// has the trait `SizeOfExcludingThis`, so nothing more is needed.
///
/// A second derive of the three is an error: it writes the same impl again.
#[proc_macro_derive(SizeOfExcludingThis, attributes(malloc_size_of))]
pub fn derive_size_of_excluding_this(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::derive(&input, Traits::Excluding).into()
}

/// Implements `MallocSizeOf` and `SizeOfIncludingThis`, for types with blocks of their own.
///
/// Writes the impl of [`MallocSizeOf`], with the same attributes, and adds the trait
/// `SizeOfIncludingThis`. Each `Box`, `Rc` and `Arc` of the type then has a safe method that
/// measures the value with its block:
///
/// ```
/// use memreport::{SizeOfIncludingThis, Traversal};
///
/// #[derive(SizeOfIncludingThis)]
/// struct Page { links: Vec<String> }
///
/// let page = Box::new(Page { links: Vec::new() });
/// let bytes = Traversal::new().run(|ops| page.size_of_including_this(ops));
/// assert!(bytes >= size_of::<Page>());
/// ```
#[proc_macro_derive(SizeOfIncludingThis, attributes(malloc_size_of))]
pub fn derive_size_of_including_this(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::derive(&input, Traits::Including).into()
}

/// Tests the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
