//! Derive.
use proc_macro::TokenStream;
/// Derive.
#[proc_macro_derive(MallocSizeOf, attributes(malloc_size_of))]
pub fn derive(_input: TokenStream) -> TokenStream {
    TokenStream::new()
}
