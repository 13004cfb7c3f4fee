//! Generates the struct of named amounts for `#[malloc_size_of(sizes = PageSizes)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;

use crate::ast::{Body, Input, Part};
use crate::errors::Errors;

/// Returns the struct and its impls, or nothing without the attribute.
// Expands to:
//     struct PageSizes { text: usize, links: usize, rest: usize }
//     impl PageSizes { fn total(&self) -> usize { … } }
//     impl AddAssign for PageSizes { … }
//     impl HasSizes for Page { type Sizes = PageSizes; fn sizes(…) -> PageSizes { … } }
pub(crate) fn expand(input: &Input<'_>, krate: &TokenStream, errors: &Errors) -> TokenStream {
    let Some(name) = &input.attrs.sizes else { return TokenStream::new() };
    let parts = parts(input, name, errors);
    let (paths, descriptions): (Vec<_>, Vec<_>) =
        parts.iter().map(|(_, part)| (&part.name, &part.description)).unzip();
    let idents: Vec<_> = parts.iter().map(|(ident, _)| ident).collect();
    let (visible, owner) = (&input.derived.vis, &input.derived.ident);
    let (impl_generics, ty_generics, where_clause) = input.derived.generics.split_for_impl();
    let doc = format!("What each part of `{}` owns, in bytes of heap.", owner.unraw());
    // Constants of these names in scope would be patterns: hence the underscores.
    let local = |name| Ident::new(name, Span::mixed_site());
    let (sizes, measured, other) = (local("__sizes"), local("__measured"), local("__other"));
    quote! {
        #[doc = #doc]
        #[derive(
            ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug,
            ::core::default::Default, ::core::cmp::PartialEq, ::core::cmp::Eq,
        )]
        #visible struct #name {
            #(#[doc = #descriptions] #visible #idents: ::core::primitive::usize,)*
            /// Bytes that belong to no part.
            #visible rest: ::core::primitive::usize,
        }

        #[automatically_derived]
        impl #name {
            /// Returns the sum of all amounts in bytes.
            #[must_use]
            #visible fn total(&self) -> ::core::primitive::usize {
                self.rest #(+ self.#idents)*
            }
        }

        #[automatically_derived]
        impl ::core::ops::AddAssign for #name {
            fn add_assign(&mut self, #other: Self) {
                self.rest += #other.rest;
                #(self.#idents += #other.#idents;)*
            }
        }

        #[automatically_derived]
        impl #impl_generics #krate::HasSizes for #owner #ty_generics #where_clause {
            type Sizes = #name;

            fn sizes(#measured: &#krate::Measured) -> #name {
                let mut #sizes = #name { rest: 0, #(#idents: #measured.part(#paths)),* };
                #sizes.rest = #measured.bytes - #sizes.total();
                #sizes
            }
        }
    }
}

/// Returns the parts of a struct, each with its field in the generated struct.
fn parts<'a>(input: &'a Input<'_>, name: &Ident, errors: &Errors) -> Vec<(Ident, &'a Part)> {
    let Body::Struct(fields) = &input.body else {
        errors.at(name, "only a struct can have sizes");
        return Vec::new();
    };
    if !input.derived.generics.params.is_empty() {
        errors.at(name, "a type with parameters cannot have sizes");
    }
    let parts: Vec<_> = fields
        .iter()
        .filter_map(|field| {
            let part = field.part.as_ref()?;
            let ident = syn::parse_str::<Ident>(&part.name).ok().filter(|ident| ident != "rest");
            if ident.is_none() {
                let message = "the sizes need another name for this part, as `part = \"name\"`";
                errors.push(syn::Error::new(field.place, message));
            }
            Some((ident?, part))
        })
        .collect();
    if fields.iter().all(|field| field.part.is_none()) {
        errors.at(name, "there is nothing to size: mark a field as `#[malloc_size_of(part)]`");
    }
    parts
}
