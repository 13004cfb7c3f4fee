//! Converts syn's tree into the derive's own: variants of fields, each with its way of measuring.

use proc_macro2::{Ident, Span};
use quote::format_ident;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, ExprPath, Fields, GenericArgument, PathArguments, Type, TypePath,
};

use crate::attr::{self, Shared, TypeAttrs};
use crate::doc_comment::first_sentence;
use crate::errors::Errors;

/// A struct or an enum.
pub(crate) struct Input<'a> {
    pub(crate) derived: &'a DeriveInput,
    pub(crate) attrs: TypeAttrs,
    pub(crate) body: Body<'a>,
}

pub(crate) enum Body<'a> {
    Struct(Vec<Field<'a>>),
    Enum(Vec<Variant<'a>>),
}

pub(crate) struct Variant<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) fields: Vec<Field<'a>>,
}

pub(crate) struct Field<'a> {
    pub(crate) member: syn::Member,
    pub(crate) ty: &'a Type,
    /// The field's name for people: `name`, `0`, `Variant.name` or `Variant.0`.
    pub(crate) label: String,
    /// The location of the declaration: the name, or the type of a field without a name.
    pub(crate) place: Span,
    pub(crate) measure: Measure,
    pub(crate) shared: Option<Shared>,
    pub(crate) part: Option<Part>,
}

/// The way in which a field is measured.
pub(crate) enum Measure {
    Whole,
    Shallow,
    Reachable,
    With(ExprPath),
    Ignored(String),
    /// It owns nothing, whatever its type is in detail.
    Nothing,
}

pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) description: String,
}

impl<'a> Input<'a> {
    pub(crate) fn read(derived: &'a DeriveInput, errors: &Errors) -> Self {
        let attrs = attr::of_type(&derived.attrs, errors);
        refuse_packed(&derived.attrs, errors);
        let owner = &derived.ident;
        let body = match &derived.data {
            Data::Struct(data) => Body::Struct(read_fields(owner, None, &data.fields, errors)),
            Data::Enum(data) => Body::Enum(
                data.variants
                    .iter()
                    .map(|variant| {
                        attr::of_variant(&variant.attrs, errors);
                        let ident = &variant.ident;
                        let fields = read_fields(owner, Some(ident), &variant.fields, errors);
                        Variant { ident, fields }
                    })
                    .collect(),
            ),
            Data::Union(data) => {
                errors.at(
                    data.union_token,
                    "the field of a union that is alive is not known; implement `MallocSizeOf` by hand",
                );
                Body::Struct(Vec::new())
            }
        };
        Input { derived, attrs, body }
    }

    pub(crate) fn fields(&self) -> Vec<&Field<'a>> {
        match &self.body {
            Body::Struct(fields) => fields.iter().collect(),
            Body::Enum(variants) => variants.iter().flat_map(|variant| &variant.fields).collect(),
        }
    }
}

/// Refuses a packed struct: its fields are not aligned, so they cannot be borrowed.
fn refuse_packed(attrs: &[Attribute], errors: &Errors) {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("repr")) {
        // The compiler itself reports other arguments.
        let _ = attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("packed") {
                errors.at(
                    &meta.path,
                    "fields of a packed struct cannot be lent; implement `MallocSizeOf` by hand",
                );
            }
            if meta.input.peek(syn::token::Paren) {
                meta.input.parse::<proc_macro2::TokenTree>()?;
            }
            Ok(())
        });
    }
}

fn read_fields<'a>(
    owner: &Ident,
    variant: Option<&Ident>,
    fields: &'a Fields,
    errors: &Errors,
) -> Vec<Field<'a>> {
    let read = |(field, member): (&'a syn::Field, syn::Member)| {
        let (name, place) = match &member {
            syn::Member::Named(name) => (name.unraw().to_string(), name.span()),
            syn::Member::Unnamed(index) => (index.index.to_string(), field.ty.span()),
        };
        let label = match variant {
            Some(variant) => format!("{}.{name}", variant.unraw()),
            None => name.clone(),
        };
        let attrs = attr::of_field(&field.attrs, errors);
        let measure = match (attrs.ignore, attrs.with, attrs.shallow, attrs.reachable) {
            (Some(reason), ..) => Measure::Ignored(reason.value()),
            (None, Some(function), ..) => Measure::With(function),
            (None, None, Some(_), _) => Measure::Shallow,
            (None, None, None, Some(_)) => Measure::Reachable,
            (None, None, None, None) if is_function(&field.ty) => Measure::Nothing,
            (None, None, None, None) => Measure::Whole,
        };
        let part = attrs.part.map(|part| Part {
            name: part.name.map_or(name, |name| name.value()),
            description: first_sentence(&field.attrs)
                .unwrap_or_else(|| format!("What `{}.{label}` owns.", owner.unraw())),
        });
        let shared = attrs.shared.map(|(_, shared)| shared);
        Field { member, ty: &field.ty, label, place, measure, shared, part }
    };
    fields.iter().zip(fields.members()).map(read).collect()
}

/// Returns whether the type is a pointer to a function, or an optional one. The trait has no impl
/// for all of them: one of `for<'a> fn(&'a T)`, for example, cannot be written.
fn is_function(ty: &Type) -> bool {
    match ty {
        Type::FnPtr(_) => true,
        Type::Group(group) => is_function(&group.elem),
        Type::Paren(paren) => is_function(&paren.elem),
        Type::Path(TypePath { qself: None, path, .. }) => {
            let last = path.segments.last().filter(|last| last.ident == "Option");
            match last.map(|last| &last.arguments) {
                Some(PathArguments::AngleBracketed(arguments)) => arguments.args.iter().all(
                    |argument| matches!(argument, GenericArgument::Type(ty) if is_function(ty)),
                ),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Returns the variable that a variant's field is bound to.
pub(crate) fn binding(index: usize) -> Ident {
    format_ident!("__field_{index}", span = Span::mixed_site())
}
