//! Gathers all errors of one input, so that the compiler shows them at once.

use core::cell::RefCell;

use quote::ToTokens;

/// The errors so far. Parsing continues after each.
#[derive(Default)]
pub(crate) struct Errors(RefCell<Option<syn::Error>>);

impl Errors {
    /// Adds an error at exactly these tokens.
    pub(crate) fn at(&self, tokens: impl ToTokens, message: &str) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&self, error: syn::Error) {
        match &mut *self.0.borrow_mut() {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    /// Returns the value, or adds the error.
    pub(crate) fn ok<T>(&self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn into_result(self) -> Result<(), syn::Error> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}
