//! Infers the bounds of the impl: a type parameter is bounded if a measured field may own its
//! values.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{GenericArgument, Generics, PathArguments, Type, TypePath, WherePredicate, parse_quote};

use crate::ast::{Input, Measure};

/// Returns the predicates to add: the stated ones, or the inferred ones.
///
/// Bounds are inferred on parameters and not on the types of fields. `Box<Node<T>>: MallocSizeOf`
/// on the impl for `Node<T>` would require itself without end.
pub(crate) fn predicates(input: &Input<'_>, krate: &TokenStream) -> Vec<WherePredicate> {
    if let Some(bound) = &input.attrs.bound {
        return bound.clone();
    }
    let mut needed = Needed { generics: &input.derived.generics, types: Vec::new() };
    for field in input.fields() {
        if matches!(field.measure, Measure::Whole) {
            needed.visit(field.ty);
        }
    }
    needed.types.iter().map(|ty| parse_quote!(#ty: #krate::MallocSizeOf)).collect()
}

/// Returns the number of leading generic arguments that the container owns. The others own nothing.
fn owning_arguments(container: &Ident) -> usize {
    match container.to_string().as_str() {
        "PhantomData" | "Weak" => 0,
        // A hasher or a function follows these.
        "HashSet" | "IndexSet" | "DashSet" | "LazyCell" | "LazyLock" | "Lazy" => 1,
        "HashMap" | "IndexMap" | "DashMap" => 2,
        _ => usize::MAX,
    }
}

/// The types that must be measurable, each once, in the order in which they appear.
struct Needed<'a> {
    generics: &'a Generics,
    types: Vec<Type>,
}

impl Needed<'_> {
    fn visit(&mut self, ty: &Type) {
        match ty {
            Type::Array(array) => self.visit(&array.elem),
            Type::Slice(slice) => self.visit(&slice.elem),
            Type::Group(group) => self.visit(&group.elem),
            Type::Paren(paren) => self.visit(&paren.elem),
            Type::Tuple(tuple) => tuple.elems.iter().for_each(|elem| self.visit(elem)),
            Type::Path(path) => self.visit_path(path),
            Type::Macro(call) => self.visit_tokens(call.mac.tokens.clone()),
            // References, pointers and functions own nothing. A trait object has bounds of its own.
            _ => {}
        }
    }

    fn visit_path(&mut self, path: &TypePath) {
        let segments = &path.path.segments;
        // `T`, `T::Item` and `<Vec<T> as IntoIterator>::Item` are needed as they stand.
        let is_projection = path.qself.is_some() && self.mentions_parameter(path.to_token_stream());
        if is_projection || (path.qself.is_none() && self.is_parameter(&segments[0].ident)) {
            return self.need(Type::Path(path.clone()));
        }
        for segment in segments {
            let PathArguments::AngleBracketed(arguments) = &segment.arguments else { continue };
            let types = arguments.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            for ty in types.take(owning_arguments(&segment.ident)) {
                self.visit(ty);
            }
        }
    }

    fn visit_tokens(&mut self, tokens: TokenStream) {
        for tree in tokens {
            match tree {
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Ident(ident) if self.is_parameter(&ident) => {
                    self.need(parse_quote!(#ident));
                }
                _ => {}
            }
        }
    }

    fn mentions_parameter(&self, tokens: TokenStream) -> bool {
        tokens.into_iter().any(|tree| match tree {
            TokenTree::Group(group) => self.mentions_parameter(group.stream()),
            TokenTree::Ident(ident) => self.is_parameter(&ident),
            _ => false,
        })
    }

    fn is_parameter(&self, ident: &Ident) -> bool {
        self.generics.type_params().any(|parameter| parameter.ident == *ident)
    }

    fn need(&mut self, ty: Type) {
        if !self.types.iter().any(|known| quote!(#known).to_string() == quote!(#ty).to_string()) {
            self.types.push(ty);
        }
    }
}
