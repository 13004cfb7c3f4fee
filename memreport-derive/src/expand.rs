//! Generates the impl.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{DeriveInput, Lifetime};

use crate::ast::{Body, Field, Input, Measure, Variant, binding};
use crate::attr::Shared;
use crate::bounds;
use crate::errors::Errors;
use crate::sizes;

/// The traits that a derive implements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traits {
    /// `MallocSizeOf`, and with it `SizeOfExcludingThis`.
    Excluding,
    /// Also `SizeOfIncludingThis`.
    Including,
}

/// Returns the impls; or the errors, and empty impls that prevent further ones.
pub(crate) fn derive(derived: &DeriveInput, traits: Traits) -> TokenStream {
    let errors = Errors::default();
    let input = Input::read(derived, &errors);
    let krate = match &input.attrs.krate {
        Some(path) => quote!(#path),
        None => quote!(::memreport),
    };
    let sizes = sizes::expand(&input, &krate, &errors);
    let output = Output { names: Names::new(krate), input: &input, traits };
    match errors.into_result() {
        Ok(()) => {
            let whole = output.whole();
            quote!(#whole #sizes)
        }
        Err(errors) => {
            let errors = errors.into_compile_error();
            let fallback = output.implementation(&output.method(&TokenStream::new()), false);
            quote!(#errors #fallback)
        }
    }
}

/// The names in the generated code.
///
/// Hygiene separates variables from outer ones. But a pattern would match a constant
/// of the same name, and lifetimes share one namespace: hence the underscores.
struct Names {
    krate: TokenStream,
    ops: Ident,
    ahead: Ident,
    measured: Lifetime,
}

impl Names {
    fn new(krate: TokenStream) -> Self {
        let ops = Ident::new("__ops", Span::mixed_site());
        let ahead = Ident::new("__ahead", Span::mixed_site());
        let measured = Lifetime::new("'__measured", Span::mixed_site());
        Names { krate, ops, ahead, measured }
    }
}

struct Output<'a> {
    names: Names,
    input: &'a Input<'a>,
    traits: Traits,
}

impl Output<'_> {
    fn whole(&self) -> TokenStream {
        let mut methods = self.method(&self.body());
        methods.extend(self.prefetching());
        let implementation = self.implementation(&methods, true);
        let skipped = self.input.fields().into_iter().filter_map(|field| self.skipped(field));
        quote!(#implementation #(#skipped)*)
    }

    // Expands to:
    //     impl<T> ::memreport::MallocSizeOf for Page<T>
    //     where T: ::memreport::MallocSizeOf { methods }
    // and, if derived, with the same bounds:
    //     impl<T> ::memreport::SizeOfIncludingThis for Page<T> where … {}
    fn implementation(&self, methods: &TokenStream, bounded: bool) -> TokenStream {
        let krate = &self.names.krate;
        let DeriveInput { ident, generics, .. } = self.input.derived;
        let mut generics = generics.clone();
        if bounded {
            let predicates = bounds::predicates(self.input, krate);
            if !predicates.is_empty() {
                generics.make_where_clause().predicates.extend(predicates);
            }
        }
        let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
        let including = (self.traits == Traits::Including).then(|| {
            quote! {
                #[automatically_derived]
                impl #impl_generics #krate::SizeOfIncludingThis for #ident #ty_generics
                #where_clause {}
            }
        });
        quote! {
            #[automatically_derived]
            impl #impl_generics #krate::MallocSizeOf for #ident #ty_generics #where_clause {
                #methods
            }
            #including
        }
    }

    // Expands to:
    //     fn add_size_of_excluding_this<'m>(&'m self, ops: &::memreport::Ops<'m>) { body }
    fn method(&self, body: &TokenStream) -> TokenStream {
        let Names { krate, ops, measured, .. } = &self.names;
        let ops = if body.is_empty() { quote!(_) } else { quote!(#ops) };
        quote! {
            #[inline]
            fn add_size_of_excluding_this<#measured>(
                &#measured self,
                #ops: &#krate::Ops<#measured>,
            ) {
                #body
            }
        }
    }

    // Expands, for a struct, to:
    //     fn prefetch(&self, ahead: Lookahead<'_>) { (&Fetch(&self.name)).fetch(ahead); … }
    //     fn prefetch_pointees(&self, ahead: Lookahead<'_>) { … fetch_pointees(ahead) … }
    //
    // Fields with a way of measuring of their own are left out. For an enum, whose fields depend on
    // the variant, nothing is generated.
    fn prefetching(&self) -> TokenStream {
        let Body::Struct(fields) = &self.input.body else { return TokenStream::new() };
        let members: Vec<_> = fields
            .iter()
            .filter(|field| matches!(field.measure, Measure::Whole))
            .map(|field| &field.member)
            .collect();
        if members.is_empty() {
            return TokenStream::new();
        }
        let Names { krate, ahead, .. } = &self.names;
        let method = |name: &str, fetch: &str| {
            let (name, fetch) =
                (Ident::new(name, Span::call_site()), Ident::new(fetch, Span::call_site()));
            quote! {
                #[inline]
                fn #name(&self, #ahead: #krate::Lookahead<'_>) {
                    use #krate::__private::{FetchAny as _, FetchMeasurable as _};
                    #((&#krate::__private::Fetch(&self.#members)).#fetch(#ahead);)*
                }
            }
        };
        let (first, then) =
            (method("prefetch", "fetch"), method("prefetch_pointees", "fetch_pointees"));
        quote!(#first #then)
    }

    fn body(&self) -> TokenStream {
        match &self.input.body {
            Body::Struct(fields) => self.body_of_struct(fields),
            Body::Enum(variants) => self.body_of_enum(variants),
        }
    }

    // Expands to the statements of the fields. With several fields that need memory, it begins
    // with:
    //     ops.prefetch(self);
    // and continues after the first field, when that memory has arrived:
    //     ops.prefetch_pointees(self);
    fn body_of_struct(&self, fields: &[Field<'_>]) -> TokenStream {
        let ops = &self.names.ops;
        let mut statements: Vec<_> = fields
            .iter()
            .map(|field| {
                let member = &field.member;
                let span = Span::call_site().located_at(field.ty.span());
                self.statement(field, &quote_spanned!(span=> &self.#member))
            })
            .collect();
        let whole = fields.iter().filter(|field| matches!(field.measure, Measure::Whole));
        if whole.count() > 1 {
            statements.insert(0, quote!(#ops.prefetch(self);));
            statements.insert(2, quote!(#ops.prefetch_pointees(self);));
        }
        quote!(#(#statements)*)
    }

    // Expands to:
    //     match self {
    //         Self::Empty {} => {}
    //         Self::Full { 0: field_0, name: field_1 } => { statements }
    //     }
    // and to nothing if no variant has a field.
    fn body_of_enum(&self, variants: &[Variant<'_>]) -> TokenStream {
        if variants.iter().all(|variant| variant.fields.is_empty()) {
            return TokenStream::new();
        }
        let arms = variants.iter().map(|Variant { ident, fields }| {
            let members = fields.iter().map(|field| &field.member);
            let bindings = (0..fields.len()).map(binding);
            let statements = fields.iter().enumerate().map(|(index, field)| {
                let mut binding = binding(index);
                binding.set_span(binding.span().located_at(field.ty.span()));
                self.statement(field, &quote!(#binding))
            });
            quote!(Self::#ident { #(#members: #bindings),* } => { #(#statements)* })
        });
        quote!(match self { #(#arms)* })
    }

    // Expands to nothing for a field that owns nothing, or to one of:
    //     ops.field(const { &field }, &self.name);
    //     ops.field_with(const { &field }, &self.name, function);
    //     ops.field_with(const { &field }, &self.name, |value, ops| ops.shallow(value));
    //     ops.field_with(const { &field }, &self.name, |value, ops| ops.reachable(value));
    //     ops.skip(const { &field }, &self.name);
    // Methods of `Ops` itself have precedence over those of any trait.
    fn statement(&self, field: &Field<'_>, value: &TokenStream) -> TokenStream {
        let constant = self.constant(field);
        // Errors about the type or the function are shown at this location.
        let place = match &field.measure {
            Measure::With(function) => function.span(),
            _ => field.ty.span(),
        };
        let span = Span::call_site().located_at(place);
        let mut ops = self.names.ops.clone();
        ops.set_span(ops.span().located_at(place));
        match &field.measure {
            Measure::Nothing => TokenStream::new(),
            Measure::Whole => quote_spanned!(span=> #ops.field(#constant, #value);),
            Measure::Ignored(_) => quote_spanned!(span=> #ops.skip(#constant, #value);),
            Measure::With(function) => {
                quote_spanned!(span=> #ops.field_with(#constant, #value, #function);)
            }
            Measure::Shallow | Measure::Reachable => {
                let inner = Ident::new("__value", ops.span());
                let way = match &field.measure {
                    Measure::Shallow => quote_spanned!(span=> shallow),
                    _ => quote_spanned!(span=> reachable),
                };
                quote_spanned! {span=>
                    #ops.field_with(#constant, #value, |#inner, #ops| #ops.#way(#inner));
                }
            }
        }
    }

    // Expands to:
    //     const { &::memreport::Field::of::<Self>("name", file!(), line!()).part("name", "…") }
    // with `.shared(First)` or the like.
    fn constant(&self, field: &Field<'_>) -> TokenStream {
        let krate = &self.names.krate;
        let label = &field.label;
        let (file, line) = place(field);
        let mut constant = quote!(#krate::Field::of::<Self>(#label, #file, #line));
        if let Some(part) = &field.part {
            let (name, description) = (&part.name, &part.description);
            constant.extend(quote!(.part(#name, #description)));
        }
        if let Some(shared) = field.shared {
            let who = match shared {
                Shared::First => quote!(First),
                Shared::Here => quote!(Here),
                Shared::Elsewhere => quote!(Elsewhere),
            };
            constant.extend(quote!(.shared(#krate::Shared::#who)));
        }
        if let Measure::Ignored(reason) = &field.measure {
            constant.extend(quote!(.ignored(#reason)));
        }
        quote!(const { &#constant })
    }

    // Expands to:
    //     const _: () = { ::memreport::__private::submit! { ::memreport::SkippedField { … } } };
    fn skipped(&self, field: &Field<'_>) -> Option<TokenStream> {
        let Measure::Ignored(reason) = &field.measure else { return None };
        let krate = &self.names.krate;
        let owner = self.input.derived.ident.unraw().to_string();
        let label = &field.label;
        let (file, line) = place(field);
        Some(quote! {
            const _: () = {
                #krate::__private::submit! {
                    #krate::SkippedField {
                        owner: #owner,
                        module: ::core::module_path!(),
                        field: #label,
                        reason: #reason,
                        file: #file,
                        line: #line,
                    }
                }
            };
        })
    }
}

/// Returns the field's own file and line: macro-generated tokens have the location of the macro's
/// call.
fn place(field: &Field<'_>) -> (TokenStream, TokenStream) {
    let here = field.place;
    (quote_spanned!(here=> ::core::file!()), quote_spanned!(here=> ::core::line!()))
}
