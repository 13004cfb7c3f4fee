//! The places in a type or a static where an attribute or a line is added.

use std::ops::Range;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprLit, Fields, ItemEnum, ItemImpl, ItemStatic, ItemStruct, Lit, Meta, Type,
    Visibility,
};

/// The file of an item, and the byte in it from which places are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) file: usize,
    pub(super) first: usize,
}

/// A struct or an enum.
#[derive(Debug)]
pub(crate) struct TypeItem {
    pub(crate) file: usize,
    /// The byte before which an attribute is added.
    pub(crate) at: usize,
    pub(crate) whole: Range<usize>,
    pub(crate) fields: Vec<FieldItem>,
    /// True if it implements `MallocSizeOf`.
    pub(crate) is_measured: bool,
}

/// A field of a type.
#[derive(Debug)]
pub(crate) struct FieldItem {
    /// The name with its type: `shop::Stock.items`, `shop::Item::Sold.0`.
    pub(crate) name: String,
    /// The byte before which an attribute is added.
    pub(crate) at: usize,
    /// The field's type.
    pub(crate) of: Range<usize>,
    /// The attribute that skips the field.
    pub(crate) ignored: Option<Range<usize>>,
    /// The attribute that decides who counts shared blocks.
    pub(crate) shared: Option<Range<usize>>,
}

/// A static.
#[derive(Debug)]
pub(crate) struct StaticItem {
    pub(crate) file: usize,
    /// The byte behind it.
    pub(crate) end: usize,
    pub(crate) start: usize,
    /// The first sentence of its documentation.
    pub(crate) description: Option<String>,
}

impl Found {
    pub(super) fn range(self, of: &impl Spanned) -> Range<usize> {
        let range = of.span().byte_range();
        self.first + range.start..self.first + range.end
    }

    /// Returns the first byte behind the attributes.
    fn start(self, vis: &Visibility, other: &impl Spanned) -> usize {
        match vis {
            Visibility::Inherited => self.range(other).start,
            vis => self.range(vis).start,
        }
    }

    fn fields(self, fields: &Fields, of: &str) -> impl Iterator<Item = FieldItem> {
        fields.iter().enumerate().map(move |(number, field)| {
            let name = field.ident.as_ref().map_or_else(|| number.to_string(), name);
            let at = match &field.ident {
                Some(ident) => self.start(&field.vis, ident),
                None => self.start(&field.vis, &field.ty),
            };
            let ignored = field.attrs.iter().find(|attribute| is_ignore(attribute));
            let shared = field.attrs.iter().find(|attribute| is_shared(attribute));
            FieldItem {
                shared: shared.map(|attribute| self.range(attribute)),
                name: format!("{of}.{name}"),
                at,
                of: self.range(&field.ty),
                ignored: ignored.map(|attribute| self.range(attribute)),
            }
        })
    }
}

pub(super) fn of_struct(item: &ItemStruct, path: &str, found: Found) -> TypeItem {
    TypeItem {
        file: found.file,
        at: found.start(&item.vis, &item.struct_token),
        whole: found.range(item),
        fields: found.fields(&item.fields, path).collect(),
        is_measured: item.attrs.iter().any(derives_measuring),
    }
}

pub(super) fn of_enum(item: &ItemEnum, path: &str, found: Found) -> TypeItem {
    let fields = item.variants.iter().flat_map(|variant| {
        let of = format!("{path}::{}", name(&variant.ident));
        found.fields(&variant.fields, &of).collect::<Vec<_>>()
    });
    TypeItem {
        file: found.file,
        at: found.start(&item.vis, &item.enum_token),
        whole: found.range(item),
        fields: fields.collect(),
        is_measured: item.attrs.iter().any(derives_measuring),
    }
}

pub(super) fn of_static(item: &ItemStatic, found: Found) -> StaticItem {
    let whole = found.range(item);
    let start = found.start(&item.vis, &item.static_token);
    let description = item.attrs.iter().find_map(documentation);
    StaticItem { file: found.file, end: whole.end, start, description }
}

/// Returns the name of the type that an impl of `MallocSizeOf` is for.
pub(super) fn implemented(item: &ItemImpl) -> Option<String> {
    let (path, ..) = item.trait_.as_ref()?;
    if path.segments.last()?.ident != "MallocSizeOf" {
        return None;
    }
    let Type::Path(of) = &*item.self_ty else { return None };
    Some(name(&of.path.segments.last()?.ident))
}

/// Returns a name without what makes a keyword a name.
pub(super) fn name(ident: &syn::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

/// Returns the text of a literal.
pub(super) fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Returns whether an attribute derives `MallocSizeOf`, perhaps under a condition.
fn derives_measuring(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let is_derive = list.path.is_ident("derive") || list.path.is_ident("cfg_attr");
    let names = list.tokens.to_string();
    let mut names = names.split(|c: char| !c.is_alphanumeric() && c != '_');
    is_derive && names.any(|name| matches!(name, "MallocSizeOf" | "SizeOfIncludingThis"))
}

/// Returns whether an attribute skips a field, perhaps under a condition.
fn is_ignore(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let words = list.tokens.to_string();
    let words: String = words.chars().filter(|c| !c.is_whitespace()).collect();
    let is_own = list.path.is_ident("malloc_size_of") && words.starts_with("ignore=");
    is_own || list.path.is_ident("cfg_attr") && words.contains("malloc_size_of(ignore=")
}

/// Returns whether an attribute decides who counts shared blocks, perhaps under a condition.
fn is_shared(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let words = list.tokens.to_string();
    let is_own = list.path.is_ident("malloc_size_of") || words.contains("malloc_size_of");
    is_own && words.split_whitespace().any(|word| word.trim_matches(['(', ',']) == "shared")
}

/// Returns the first sentence of a line of documentation.
fn documentation(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let text = pair.path.is_ident("doc").then(|| text(&pair.value)).flatten()?;
    let first = text.trim().split(". ").next()?.trim_end_matches('.').to_owned();
    // A sentence that goes on in the next line is not whole.
    let is_whole = text.trim().ends_with('.') || text.contains(". ");
    (is_whole && !first.is_empty() && !first.contains(['"', '\\'])).then(|| format!("{first}."))
}
