//! The variables of functions that are a new `Arc`.

use super::items::{self, Found};
use std::ops::RangeInclusive;
use syn::{Block, Expr, ImplItem, ItemImpl, Local, Pat, Stmt};

/// A `let` of a new `Arc`.
#[derive(Debug)]
pub(crate) struct VariableItem {
    pub(crate) file: usize,
    /// The name in the source.
    pub(crate) name: String,
    pub(crate) start: usize,
    /// The byte behind it.
    pub(crate) end: usize,
    /// Its lines, from 1.
    pub(crate) lines: RangeInclusive<u32>,
}

/// Returns the methods of an impl with their names.
pub(super) fn methods(item: &ItemImpl) -> impl Iterator<Item = (String, &Block)> {
    item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) => Some((items::name(&method.sig.ident), &method.block)),
        _ => None,
    })
}

/// Returns the variables that the statements of a block make, not of blocks in it.
pub(super) fn of_block(block: &Block, text: &str, found: Found) -> Vec<(String, VariableItem)> {
    let line = |at: usize| {
        let before = text.get(..at).unwrap_or_default().matches('\n').count();
        u32::try_from(before + 1).unwrap_or(u32::MAX)
    };
    let variables = block.stmts.iter().filter_map(|statement| {
        let Stmt::Local(local) = statement else { return None };
        let name = new_counted(local)?;
        let range = found.range(local);
        let lines = line(range.start)..=line(range.end);
        let (start, end) = (range.start, range.end);
        Some((name.clone(), VariableItem { file: found.file, name, start, end, lines }))
    });
    variables.collect()
}

/// Returns the name of a variable, if it is a new `Arc`.
fn new_counted(local: &Local) -> Option<String> {
    let pattern = match &local.pat {
        Pat::Type(of) => &*of.pat,
        pattern => pattern,
    };
    let Pat::Ident(ident) = pattern else { return None };
    let Expr::Call(call) = &*local.init.as_ref()?.expr else { return None };
    let Expr::Path(function) = &*call.func else { return None };
    let mut segments = function.path.segments.iter().rev();
    let (function, of) = (segments.next()?, segments.next()?);
    let is_new = of.ident == "Arc" && (function.ident == "new" || function.ident == "new_cyclic");
    is_new.then(|| items::name(&ident.ident))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_counted_variables_are_found_with_their_lines() {
        let text = "fn main() {\n    let a = Arc::new(1);\n    let b: sync::Arc<u8> =\n        sync::Arc::new(2);\n    \
                    let (c, d) = Arc::new(3);\n    let e = Rc::new(4);\n    let f = Arc::clone(&a);\n}\n";
        let file = syn::parse_file(text).unwrap();
        let syn::Item::Fn(item) = &file.items[0] else { panic!("a function") };
        let found = of_block(&item.block, text, Found { file: 0, first: 0 });
        let found =
            found.iter().map(|(name, of)| (&**name, of.lines.clone(), &text[of.start..of.end]));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                ("a", 2..=2, "let a = Arc::new(1);"),
                ("b", 3..=4, "let b: sync::Arc<u8> =\n        sync::Arc::new(2);")
            ]
        );
    }
}
