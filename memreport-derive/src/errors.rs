//! All mistakes of one input, gathered, so that they are shown at once.

use core::cell::RefCell;

use quote::ToTokens;

/// Gathers errors; the input is read on.
#[derive(Default)]
pub(crate) struct Errors(RefCell<Option<syn::Error>>);

impl Errors {
    /// A mistake, at exactly these tokens.
    pub(crate) fn at(&self, tokens: impl ToTokens, message: &str) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&self, error: syn::Error) {
        match &mut *self.0.borrow_mut() {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    /// The value of what worked.
    pub(crate) fn ok<T>(&self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn into_result(self) -> Result<(), syn::Error> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}
