//! The first sentence of a doc comment, which describes a part.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the first sentence of a doc comment.
pub(crate) fn first_sentence(attrs: &[Attribute]) -> Option<String> {
    let lines = attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = paragraph.split_whitespace().collect();
    let end = words.iter().position(|word| word.ends_with(['.', '!', '?']) && !is_short(word));
    let sentence = words[..end.map_or(words.len(), |end| end + 1)].join(" ");
    (!sentence.is_empty()).then_some(sentence)
}

/// Returns whether the full stop belongs to an abbreviation, and does not end the sentence.
fn is_short(word: &str) -> bool {
    matches!(word.trim_start_matches('('), "e.g." | "i.e." | "etc." | "cf." | "vs." | "approx.")
}
