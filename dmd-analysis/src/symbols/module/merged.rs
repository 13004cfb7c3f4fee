//! Functions that share one address, because the linker or the compiler merged equal code.
//!
//! Debug information describes one of them: its type arguments, lines and inlined functions are
//! wrong for the others. Frames only keep what is true of every function.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::names::demangle;
use crate::read::Symbol;

/// The number of functions to list.
const MAX_LISTED: usize = 3;

/// The common part of the functions at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Merged {
    /// Instances of one generic function; the text is its path.
    Instances(String),
    /// Different functions; the text lists them: `one of a::f, b::g`.
    Different(String),
}

impl Merged {
    /// Compares the functions with these symbols of the symbol table. Returns `None` for names of
    /// other languages, which give one function several names on purpose.
    pub(crate) fn of<'n>(symbols: impl Iterator<Item = &'n str>) -> Option<Self> {
        let names: BTreeSet<String> = symbols.filter_map(demangle).collect();
        // The entry into the allocator ends a stack, whichever function it is merged with.
        if let Some(entry) = names.iter().find(|name| name.starts_with("__rustc::")) {
            return Some(Self::Instances(entry.clone()));
        }
        let paths: BTreeSet<String> = names.iter().map(|name| without_arguments(name)).collect();
        if paths.len() < 2 {
            return paths.into_iter().next().map(Self::Instances);
        }
        let listed: Vec<&str> = names.iter().map(|name| &**name).take(MAX_LISTED).collect();
        let mut text = format!("one of {}", listed.join(", "));
        if names.len() > MAX_LISTED {
            text.push_str(&format!(" and {} more", names.len() - MAX_LISTED));
        }
        Some(Self::Different(text))
    }

    /// Removes from the frames at the address what may be wrong for one of the functions.
    pub(crate) fn correct(&self, frames: &mut Vec<Symbol>) {
        match self {
            Self::Instances(path) => {
                for frame in frames.iter_mut() {
                    frame.function = without_arguments(&frame.function).into();
                    // The name stays as an example of the types.
                    frame.folded = true;
                }
                if let Some(outermost) = frames.last_mut() {
                    outermost.function = path.as_str().into();
                }
            }
            Self::Different(text) => {
                let function: Arc<str> = text.as_str().into();
                *frames = vec![Symbol {
                    function,
                    name: None,
                    file: None,
                    line: None,
                    inlined: false,
                    folded: true,
                    module: None,
                }];
            }
        }
    }
}

/// Returns the name of a function without its type arguments and the lengths of arrays: the same
/// text for all instances of a generic function.
fn without_arguments(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    // The brackets that are open in a part that is left out.
    let mut depth = 0_usize;
    let mut before = ' ';
    for c in name.chars() {
        let closes = matches!(c, '>' | ']') && before != '-';
        let begins = match c {
            '<' => path.ends_with(|c: char| c.is_alphanumeric() || "_:}".contains(c)),
            '[' => true,
            _ => false,
        };
        before = c;
        if depth > 0 {
            depth += usize::from(matches!(c, '<' | '['));
            depth -= usize::from(closes);
        } else if begins {
            depth = 1;
            match c {
                '[' => path.push_str("[_]"),
                // `f::<u8>` is `f`.
                _ => path.truncate(path.trim_end_matches(':').len()),
            }
        } else {
            path.push(c);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::{Merged, without_arguments};
    use crate::read::Symbol;

    #[test]
    fn instances_of_a_generic_function_have_one_path() {
        let table = [
            ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push"),
            ("<alloc::vec::Vec<u32>>::push", "<alloc::vec::Vec>::push"),
            ("subject::make::<[u8; 4], fn(u8) -> u8>", "subject::make"),
            ("push<alloc::vec::Vec<u8>, Global>", "push"),
            ("<[u16]>::to_vec", "<[_]>::to_vec"),
            ("<a::B<T> as c::D<u8>>::e", "<a::B as c::D>::e"),
            ("a::f::{closure#0}", "a::f::{closure#0}"),
        ];
        for (name, expected) in table {
            assert_eq!(without_arguments(name), expected, "{name}");
        }
    }

    #[test]
    fn functions_at_one_address_are_all_named_or_what_they_have_in_common() {
        let f = "_ZN7subject1f17h0123456789abcdefE";
        let again = "_ZN7subject1f17h1123456789abcdefE";
        let [g, h, i] =
            ["g", "h", "i"].map(|name| format!("_ZN7subject1{name}17h0123456789abcdefE"));
        let instances = |path: &str| Some(Merged::Instances(path.to_owned()));
        let different = |text: &str| Some(Merged::Different(text.to_owned()));
        let entry = "_RNvCs1234_7___rustc12___rust_alloc";
        let table = [
            (vec!["malloc", "__libc_malloc"], None),
            (vec![f, again], instances("subject::f")),
            (vec![f, &g, again], different("one of subject::f, subject::g")),
            (
                vec![&i, &h, &g, f],
                different("one of subject::f, subject::g, subject::h and 1 more"),
            ),
            (vec![f, entry], instances("__rustc::__rust_alloc")),
        ];
        for (symbols, expected) in table {
            assert_eq!(Merged::of(symbols.iter().copied()), expected, "{symbols:?}");
        }
    }

    #[test]
    fn frames_keep_only_what_is_true_of_every_function() {
        let symbol = |function: &str, inlined| Symbol {
            function: function.into(),
            name: Some("make<u8>".into()),
            file: Some("src/main.rs".into()),
            line: Some(7),
            inlined,
            folded: false,
            module: None,
        };
        let frames = || vec![symbol("new<u8>", true), symbol("subject::make", false)];
        let mut instances = frames();
        Merged::Instances("subject::make".to_owned()).correct(&mut instances);
        let functions: Vec<&str> = instances.iter().map(|symbol| &*symbol.function).collect();
        assert_eq!(functions, ["new", "subject::make"]);
        assert!(instances.iter().all(|symbol| symbol.folded && symbol.line == Some(7)));

        let mut different = frames();
        Merged::Different("one of a::f, b::g".to_owned()).correct(&mut different);
        assert_eq!(different.len(), 1);
        assert_eq!(&*different[0].function, "one of a::f, b::g");
        assert_eq!((&different[0].file, different[0].line), (&None, None));
    }
}
