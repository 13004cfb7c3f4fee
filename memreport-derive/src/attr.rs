//! Reads `#[malloc_size_of(…)]`, and refuses what is misplaced, repeated or without effect.

mod values;

use proc_macro2::Ident;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::{Attribute, ExprPath, LitStr, Meta, Path, Token, WherePredicate};

use self::values::{alone, parse_bound, parse_part, parse_reason, parse_shared, unquoted};
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
    pub(crate) reachable: Option<Path>,
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
        "ignore" | "with" | "shallow" | "reachable" | "shared" | "part" => {
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
        "shallow" => once(errors, &meta, &mut found.shallow, |meta| alone(meta, "shallow")),
        "reachable" => once(errors, &meta, &mut found.reachable, |meta| alone(meta, "reachable")),
        "shared" => once(errors, &meta, &mut found.shared, parse_shared),
        "part" => once(errors, &meta, &mut found.part, parse_part),
        "bound" | "crate" | "sizes" => {
            refuse(errors, &meta, "not expected here; it belongs on top of the type");
        }
        _ => refuse(
            errors,
            &meta,
            "not known; on a field there are `ignore`, `with`, `shallow`, `reachable`, `shared` and `part`",
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
        for way in [&found.shallow, &found.reachable].into_iter().flatten() {
            errors.at(way, IGNORED);
        }
        if let Some((who, _)) = &found.shared {
            errors.at(who, IGNORED);
        }
        if let Some(part) = &found.part {
            errors.at(&part.at, IGNORED);
        }
        return;
    }
    if let (Some(with), Some(_)) = (&found.with, &found.shallow) {
        errors.at(with, "the field cannot be measured in two ways; remove this or `shallow`");
    }
    if found.reachable.is_some() {
        refuse_beside_reachable(found, errors);
    }
}

/// Refuses what has no effect on blocks that are found by following pointers.
fn refuse_beside_reachable(found: &FieldAttrs, errors: &Errors) {
    const TWO: &str = "the field cannot be measured in two ways; remove this or `reachable`";
    const ONCE: &str = "each block behind a `reachable` field counts once, if nobody measures it; remove this or `reachable`";
    const PATH: &str =
        "what is reachable has a path of its own, below `inferred`; remove this or `reachable`";
    if let Some(with) = &found.with {
        errors.at(with, TWO);
    }
    if let Some(shallow) = &found.shallow {
        errors.at(shallow, TWO);
    }
    if let Some((who, _)) = &found.shared {
        errors.at(who, ONCE);
    }
    if let Some(part) = &found.part {
        errors.at(&part.at, PATH);
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
