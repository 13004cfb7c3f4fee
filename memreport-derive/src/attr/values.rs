//! Parses the values of the attribute's words, with a message for each mistake.

use proc_macro2::{Ident, TokenStream};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, Lit, LitStr, Path, Token, WherePredicate};

use super::{PartAttr, Shared};

pub(super) fn parse_reason(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    const REMEDY: &str = "say why the field is not measured, as `ignore = \"owned by the window\"`";
    let reason = text(meta, REMEDY)?;
    if reason.value().trim().is_empty() {
        return Err(syn::Error::new(reason.span(), REMEDY));
    }
    Ok(reason)
}

pub(super) fn parse_bound(meta: &ParseNestedMeta<'_>) -> syn::Result<Vec<WherePredicate>> {
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

pub(super) fn parse_shared(meta: &ParseNestedMeta<'_>) -> syn::Result<(Ident, Shared)> {
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

/// Reads a word that has no value.
pub(super) fn alone(meta: &ParseNestedMeta<'_>, word: &str) -> syn::Result<Path> {
    nothing_more(meta, &format!("write `{word}` alone"))?;
    Ok(meta.path.clone())
}

pub(super) fn parse_part(meta: &ParseNestedMeta<'_>) -> syn::Result<PartAttr> {
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
pub(super) fn unquoted<T: Parse>(meta: &ParseNestedMeta<'_>, remedy: &str) -> syn::Result<T> {
    if !meta.input.peek(Token![=]) {
        return Err(syn::Error::new_spanned(&meta.path, remedy));
    }
    let value = meta.value()?;
    if value.peek(Lit) {
        return Err(syn::Error::new_spanned(value.parse::<Lit>()?, remedy));
    }
    value.parse()
}
