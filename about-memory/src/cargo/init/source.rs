//! Adds the allocator line and a reporter to the text of a binary's main file.

use super::super::workspace::FEATURE;
use syn::spanned::Spanned;
use syn::{File, Item, ItemStatic, Type};

/// Returns the new text, and what was added.
///
/// # Errors
///
/// The text is not Rust, or the program cannot have this allocator.
pub(super) fn edit(text: &str, program: &str) -> Result<(String, Vec<String>), String> {
    let file = syn::parse_file(text).map_err(|error| {
        format!("line {}: this is not understood as Rust: {error}", error.span().start().line)
    })?;
    refuse(&file)?;
    let mut lines = Vec::new();
    let mut added = Vec::new();
    let gate = format!("#[cfg(feature = \"{FEATURE}\")]");
    if !has_macro(&file.items, "global_allocator") {
        lines.extend(["".to_owned(), gate.clone(), "dmd::global_allocator!();".to_owned()]);
        added.push("the allocator".to_owned());
    }
    if !has_macro(&file.items, "reporter") {
        let (example, name) = match file.items.iter().find_map(measurable) {
            Some(own) => (None, own.ident.to_string()),
            None => (Some(EXAMPLE), "EXAMPLE".to_owned()),
        };
        if let Some(example) = example {
            lines.push(String::new());
            lines.extend(example.lines().map(str::to_owned));
            lines.extend([gate.clone(), example_static()]);
        }
        let path = format!("explicit/{program}/{}", name.to_lowercase());
        lines.extend([
            String::new(),
            gate,
            format!("memreport::reporter!(\"{path}\", {name}, \"The heap that {name} owns.\");"),
        ]);
        added.push(format!("a reporter of {name}"));
    }
    if lines.is_empty() {
        return Ok((text.to_owned(), added));
    }
    let after = line_to_insert_after(&file);
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    let after = after.min(all.len());
    if after == 0 {
        // The first line of the file: an empty line follows instead.
        lines.remove(0);
        lines.push(String::new());
    } else if all.get(after).is_some_and(|next| !next.trim().is_empty()) {
        lines.push(String::new());
    }
    all.splice(after..after, lines);
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    Ok((all.join(ending) + ending, added))
}

/// The comment of the static in a program that has none to measure.
const EXAMPLE: &str = "\
// A reporter measures what a value owns. Replace EXAMPLE by a static of yours; its types need
// `#[cfg_attr(feature = \"memreport\", derive(memreport::MallocSizeOf))]`.";

fn example_static() -> String {
    "static EXAMPLE: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());".to_owned()
}

/// Refuses programs that declare an allocator, or have no standard library.
fn refuse(file: &File) -> Result<(), String> {
    let is_no_std = file.attrs.iter().any(|attribute| attribute.path().is_ident("no_std"));
    if is_no_std {
        return Err("a program without the standard library cannot use DMD".to_owned());
    }
    let is_allocator = |item: &ItemStatic| {
        item.attrs.iter().any(|attribute| attribute.path().is_ident("global_allocator"))
    };
    let own = file.items.iter().find_map(|item| match item {
        Item::Static(item) if is_allocator(item) => Some(item),
        _ => None,
    });
    let Some(own) = own.filter(|_| !has_macro(&file.items, "global_allocator")) else {
        return Ok(());
    };
    let line = own.span().start().line;
    Err(format!(
        "line {line}: the program declares an allocator. Write `#[cfg(not(feature = \"{FEATURE}\"))]` before it, and \
         `#[cfg(feature = \"{FEATURE}\")] dmd::global_allocator!(…);` with the same allocator after it; then repeat this command"
    ))
}

/// Returns whether a macro of this name is called among the items, or in modules among them.
fn has_macro(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| match item {
        Item::Macro(item) => {
            item.mac.path.segments.last().is_some_and(|segment| segment.ident == name)
        }
        Item::Mod(item) => item.content.as_ref().is_some_and(|(_, items)| has_macro(items, name)),
        _ => false,
    })
}

/// Returns a static with a type that can be measured as it is: one made of std's types alone.
fn measurable(item: &Item) -> Option<&ItemStatic> {
    let Item::Static(item) = item else { return None };
    let is_conditional = item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"));
    (!is_conditional && owns_heap(&item.ty) && is_of_std(&item.ty)).then_some(item)
}

/// The types whose values own blocks, and those that they may be made of.
const OWNERS: [&str; 9] = [
    "Vec",
    "String",
    "HashMap",
    "HashSet",
    "BTreeMap",
    "BTreeSet",
    "VecDeque",
    "BinaryHeap",
    "Box",
];
const OTHERS: [&str; 21] = [
    "Mutex", "RwLock", "OnceLock", "LazyLock", "Option", "bool", "char", "u8", "u16", "u32", "u64",
    "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
];

fn owns_heap(ty: &Type) -> bool {
    any(ty, &|name| OWNERS.contains(&name))
}

fn is_of_std(ty: &Type) -> bool {
    !any(ty, &|name| !OWNERS.contains(&name) && !OTHERS.contains(&name))
}

/// Returns whether a name in a type fulfils a condition. Types without a name have the empty one.
fn any(ty: &Type, condition: &dyn Fn(&str) -> bool) -> bool {
    let Type::Path(path) = ty else {
        return match ty {
            Type::Tuple(tuple) => tuple.elems.iter().any(|ty| any(ty, condition)),
            _ => condition(""),
        };
    };
    let Some(last) = path.path.segments.last() else { return condition("") };
    let inner = match &last.arguments {
        syn::PathArguments::AngleBracketed(inner) => inner.args.iter().any(|inner| match inner {
            syn::GenericArgument::Type(ty) => any(ty, condition),
            _ => condition(""),
        }),
        _ => false,
    };
    condition(&last.ident.to_string()) || inner
}

/// Returns the line, from 1, after which items are inserted: after the imports at the top, or
/// before the first item.
fn line_to_insert_after(file: &File) -> usize {
    let is_import = |item: &&Item| match item {
        Item::Use(_) | Item::ExternCrate(_) => true,
        Item::Mod(item) => item.content.is_none(),
        _ => false,
    };
    let imports = file.items.iter().take_while(is_import).last();
    if let Some(last) = imports {
        return last.span().end().line;
    }
    let attributes = file.attrs.last().map_or(0, |attribute| attribute.span().end().line);
    let first = file.items.first().map_or(usize::MAX, |item| item.span().start().line - 1);
    first.max(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_come_after_the_imports_once() {
        let text = "//! A shop.\n\nuse std::{\n    fs,\n};\n// The entry.\nfn main() {\n    fs::read(\"x\").ok();\n}\n";
        let (text, added) = edit(text, "shop").unwrap();
        insta::assert_snapshot!(text, @r##"
        //! A shop.

        use std::{
            fs,
        };

        #[cfg(feature = "memreport")]
        dmd::global_allocator!();

        // A reporter measures what a value owns. Replace EXAMPLE by a static of yours; its types need
        // `#[cfg_attr(feature = "memreport", derive(memreport::MallocSizeOf))]`.
        #[cfg(feature = "memreport")]
        static EXAMPLE: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

        #[cfg(feature = "memreport")]
        memreport::reporter!("explicit/shop/example", EXAMPLE, "The heap that EXAMPLE owns.");

        // The entry.
        fn main() {
            fs::read("x").ok();
        }
        "##);
        assert_eq!(added, ["the allocator", "a reporter of EXAMPLE"]);
        assert_eq!(edit(&text, "shop"), Ok((text.clone(), Vec::new())));
    }

    #[test]
    fn a_static_of_the_program_is_reported_if_it_can_be() {
        let table = [
            ("static STOCK: Mutex<HashMap<String, u64>> = todo!();", "STOCK"),
            ("static STOCK: std::sync::OnceLock<Vec<(u8, String)>> = todo!();", "STOCK"),
            // Nothing on the heap, a type of the program, borrowed text.
            ("static COUNT: Mutex<u64> = todo!();", "EXAMPLE"),
            ("static STOCK: Mutex<Vec<Thing>> = todo!();", "EXAMPLE"),
            ("static STOCK: Mutex<Vec<&'static str>> = todo!();", "EXAMPLE"),
            ("#[cfg(unix)] static STOCK: Mutex<Vec<u8>> = todo!();", "EXAMPLE"),
        ];
        for (line, expected) in table {
            let (text, added) = edit(&format!("{line}\nfn main() {{}}\n"), "shop").unwrap();
            assert_eq!(added[1], format!("a reporter of {expected}"), "{text}");
            assert!(text.contains(&format!(", {expected}, ")), "{text}");
        }
    }

    #[test]
    fn what_a_module_of_the_file_has_is_not_added() {
        let text = "mod memory {\n    #[cfg(feature = \"memreport\")]\n    dmd::global_allocator!();\n}\nmod shop;\nfn main() {}\n";
        let (edited, added) = edit(text, "shop").unwrap();
        assert_eq!(added, ["a reporter of EXAMPLE"], "{edited}");
    }

    #[test]
    fn a_file_that_begins_with_its_code_ends_as_before() {
        let (text, _) = edit("fn main() {}\r\n", "a").unwrap();
        assert!(text.starts_with("#[cfg(feature = \"memreport\")]\r\ndmd::"), "{text:?}");
        assert!(text.ends_with("\r\n\r\nfn main() {}\r\n"), "{text:?}");
        let (text, _) = edit("#!/usr/bin/env run\n#![allow(unused)]\nfn main() {}", "a").unwrap();
        assert!(text.starts_with("#!/usr/bin/env run\n#![allow(unused)]\n\n#[cfg("), "{text:?}");
    }

    #[test]
    fn a_program_that_cannot_have_the_allocator_is_refused_with_the_remedy() {
        let own = "#[global_allocator]\nstatic A: MiMalloc = MiMalloc;\nfn main() {}";
        assert!(
            edit(own, "a").unwrap_err().starts_with("line 1: the program declares an allocator.")
        );
        let both = format!(
            "#[cfg(not(feature = \"memreport\"))]\n{own}\n#[cfg(feature = \"memreport\")]\ndmd::global_allocator!(MiMalloc);"
        );
        assert_eq!(edit(&both, "a").unwrap().1, ["a reporter of EXAMPLE"]);
        assert!(edit("#![no_std]\nfn main() {}", "a").is_err());
        assert!(edit("fn main( {}", "a").unwrap_err().starts_with("line 1: "));
    }
}
