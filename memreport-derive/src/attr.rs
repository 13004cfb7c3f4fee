//! Parses `#[malloc_size_of(…)]`, with a message for each mistake.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, ExprPath, Lit, LitStr, Meta, Path, Token, WherePredicate};

use crate::errors::Errors;

const NAME: &str = "malloc_size_of";

/// The attributes of a type.
#[derive(Default)]
pub(crate) struct TypeAttrs {
    /// The stated bounds, instead of the inferred ones.
    pub(crate) bound: Option<Vec<WherePredicate>>,
    pub(crate) krate: Option<Path>,
    /// The name of the struct of named amounts.
    pub(crate) sizes: Option<Ident>,
}

/// The attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttrs {
    pub(crate) ignore: Option<LitStr>,
    pub(crate) with: Option<ExprPath>,
    pub(crate) shallow: Option<Path>,
    pub(crate) shared: Option<(Ident, Shared)>,
    pub(crate) part: Option<PartAttr>,
}

/// The rule that decides which owner counts a shared block.
#[derive(Clone, Copy)]
pub(crate) enum Shared {
    First,
    Here,
    Elsewhere,
}

/// A part, with its own name or the field's.
pub(crate) struct PartAttr {
    pub(crate) at: Path,
    pub(crate) name: Option<LitStr>,
}

pub(crate) fn of_type(attrs: &[Attribute], errors: &Errors) -> TypeAttrs {
    let mut found = TypeAttrs::default();
    each_word(attrs, errors, |meta| match word(&meta).as_str() {
        "bound" => once(errors, &meta, &mut found.bound, parse_bound),
        "crate" => once(errors, &meta, &mut found.krate, |meta| {
            let message = "write the path without quotes, as `crate = path::to::memreport`";
            unquoted(meta, message)
        }),
        "sizes" => once(errors, &meta, &mut found.sizes, |meta| {
            unquoted(meta, "write the struct's name without quotes, as `sizes = PageSizes`")
        }),
        "ignore" | "with" | "shallow" | "shared" | "part" => {
            refuse(errors, &meta, "not expected here; it belongs on a field of the type");
        }
        _ => refuse(errors, &meta, "not known; on a type there are `bound`, `crate` and `sizes`"),
    });
    found
}

pub(crate) fn of_variant(attrs: &[Attribute], errors: &Errors) {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(NAME)) {
        errors.at(attr, "not expected here; it belongs on the fields of the variant");
    }
}

pub(crate) fn of_field(attrs: &[Attribute], errors: &Errors) -> FieldAttrs {
    let mut found = FieldAttrs::default();
    each_word(attrs, errors, |meta| match word(&meta).as_str() {
        "ignore" => once(errors, &meta, &mut found.ignore, parse_reason),
        "with" => once(errors, &meta, &mut found.with, |meta| {
            unquoted(meta, "write the function's path without quotes, as `with = path`")
        }),
        "shallow" => once(errors, &meta, &mut found.shallow, parse_shallow),
        "shared" => once(errors, &meta, &mut found.shared, parse_shared),
        "part" => once(errors, &meta, &mut found.part, parse_part),
        "bound" | "crate" | "sizes" => {
            refuse(errors, &meta, "not expected here; it belongs on top of the type");
        }
        _ => refuse(
            errors,
            &meta,
            "not known; on a field there are `ignore`, `with`, `shallow`, `shared` and `part`",
        ),
    });
    refuse_contradictions(&found, errors);
    found
}

fn refuse_contradictions(found: &FieldAttrs, errors: &Errors) {
    const IGNORED: &str = "the field is not measured, so this has no effect; remove it or `ignore`";
    if found.ignore.is_some() {
        if let Some(with) = &found.with {
            errors.at(with, IGNORED);
        }
        if let Some(shallow) = &found.shallow {
            errors.at(shallow, IGNORED);
        }
        if let Some((who, _)) = &found.shared {
            errors.at(who, IGNORED);
        }
        if let Some(part) = &found.part {
            errors.at(&part.at, IGNORED);
        }
    } else if let (Some(with), Some(_)) = (&found.with, &found.shallow) {
        errors.at(with, "the field cannot be measured in two ways; remove this or `shallow`");
    }
}

/// Calls `each` with every word of every `#[malloc_size_of(…)]`.
fn each_word(attrs: &[Attribute], errors: &Errors, mut each: impl FnMut(ParseNestedMeta<'_>)) {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(NAME)) {
        if !matches!(attr.meta, Meta::List(_)) {
            errors.at(attr, "say what about it, as `#[malloc_size_of(ignore = \"why\")]`");
            continue;
        }
        errors.ok(attr.parse_nested_meta(|meta| {
            each(meta);
            Ok(())
        }));
    }
}

fn word(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// Reads the value of a word that may appear once.
fn once<T>(
    errors: &Errors,
    meta: &ParseNestedMeta<'_>,
    place: &mut Option<T>,
    read: impl FnOnce(&ParseNestedMeta<'_>) -> syn::Result<T>,
) {
    if place.is_some() {
        return refuse(errors, meta, "given twice; remove one");
    }
    match read(meta) {
        Ok(value) => *place = Some(value),
        Err(error) => {
            errors.push(error);
            skip_value(meta.input);
        }
    }
}

fn refuse(errors: &Errors, meta: &ParseNestedMeta<'_>, message: &str) {
    errors.at(&meta.path, message);
    skip_value(meta.input);
}

/// Skips to the next comma, so that the following words are read as well.
fn skip_value(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        // A token tree can always be read before the end of the input.
        let _ = input.parse::<proc_macro2::TokenTree>();
    }
}

fn parse_reason(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    const REMEDY: &str = "say why the field is not measured, as `ignore = \"owned by the window\"`";
    let reason = text(meta, REMEDY)?;
    if reason.value().trim().is_empty() {
        return Err(syn::Error::new(reason.span(), REMEDY));
    }
    Ok(reason)
}

fn parse_bound(meta: &ParseNestedMeta<'_>) -> syn::Result<Vec<WherePredicate>> {
    let bound = text(meta, "write the bounds in quotes, as `bound = \"T: Trait\"`")?;
    let parse = Punctuated::<WherePredicate, Token![,]>::parse_terminated;
    match bound.parse_with(parse) {
        Ok(bounds) => Ok(bounds.into_iter().collect()),
        Err(error) => {
            let message = format!("{error}; write bounds as behind `where`");
            Err(syn::Error::new(bound.span(), message))
        }
    }
}

fn parse_shared(meta: &ParseNestedMeta<'_>) -> syn::Result<(Ident, Shared)> {
    const REMEDY: &str = "say who counts shared blocks: `shared = first`, `shared = here` or `shared = elsewhere`, without quotes";
    if !meta.input.peek(Token![=]) {
        return Err(syn::Error::new_spanned(&meta.path, REMEDY));
    }
    meta.input.parse::<Token![=]>()?;
    if !meta.input.peek(Ident::peek_any) {
        let value: TokenStream = meta.input.parse::<proc_macro2::TokenTree>()?.into();
        return Err(syn::Error::new_spanned(value, REMEDY));
    }
    let who: Ident = meta.input.call(Ident::parse_any)?;
    match who.to_string().as_str() {
        "first" => Ok((who, Shared::First)),
        "here" => Ok((who, Shared::Here)),
        "elsewhere" => Ok((who, Shared::Elsewhere)),
        _ => Err(syn::Error::new_spanned(who, REMEDY)),
    }
}

fn parse_shallow(meta: &ParseNestedMeta<'_>) -> syn::Result<Path> {
    nothing_more(meta, "write `shallow` alone")?;
    Ok(meta.path.clone())
}

fn parse_part(meta: &ParseNestedMeta<'_>) -> syn::Result<PartAttr> {
    const REMEDY: &str = "write `part`, or `part = \"name\"` with a name that is not empty";
    if !meta.input.peek(Token![=]) {
        nothing_more(meta, REMEDY)?;
        return Ok(PartAttr { at: meta.path.clone(), name: None });
    }
    let name = text(meta, REMEDY)?;
    if name.value().split('/').any(str::is_empty) {
        return Err(syn::Error::new(name.span(), REMEDY));
    }
    Ok(PartAttr { at: meta.path.clone(), name: Some(name) })
}

/// Checks that the word has no value.
fn nothing_more(meta: &ParseNestedMeta<'_>, remedy: &str) -> syn::Result<()> {
    if meta.input.is_empty() || meta.input.peek(Token![,]) {
        return Ok(());
    }
    Err(meta.input.error(remedy))
}

/// Reads the string after `=`.
fn text(meta: &ParseNestedMeta<'_>, remedy: &str) -> syn::Result<LitStr> {
    if !meta.input.peek(Token![=]) {
        return Err(syn::Error::new_spanned(&meta.path, remedy));
    }
    match meta.value()?.parse()? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        other => Err(syn::Error::new_spanned(other, remedy)),
    }
}

/// Reads the path after `=`, which must not be in quotes.
fn unquoted<T: Parse>(meta: &ParseNestedMeta<'_>, remedy: &str) -> syn::Result<T> {
    if !meta.input.peek(Token![=]) {
        return Err(syn::Error::new_spanned(&meta.path, remedy));
    }
    let value = meta.value()?;
    if value.peek(Lit) {
        return Err(syn::Error::new_spanned(value.parse::<Lit>()?, remedy));
    }
    value.parse()
}
