//! Compares names as Firefox does, if the feature `collation` is on.

#[cfg(feature = "collation")]
use icu_collator::options::CollatorOptions;
#[cfg(feature = "collation")]
use icu_collator::{Collator, CollatorBorrowed};
use std::cmp::Ordering;
use std::fmt;

/// Compares names as `localeCompare` in an English Firefox does: punctuation, digits, letters; a
/// before B before c. Without the feature `collation`, by their characters.
#[derive(Default)]
pub struct Names {
    #[cfg(feature = "collation")]
    rules: Rules,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

/// The rules of the root locale, which English shares. They are compiled in.
#[cfg(feature = "collation")]
struct Rules(CollatorBorrowed<'static>);

#[cfg(feature = "collation")]
impl Default for Rules {
    fn default() -> Self {
        let rules = Collator::try_new(Default::default(), CollatorOptions::default());
        Rules(rules.expect("the root collation"))
    }
}

impl Names {
    /// Compares two names.
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        #[cfg(feature = "collation")]
        return self.rules.0.compare(a, b);
        #[cfg(not(feature = "collation"))]
        a.cmp(b)
    }

    /// Returns a sort key: bytes that compare as the name does. Worth its cost if a name is
    /// compared many times.
    pub fn key(&self, name: &str) -> Vec<u8> {
        #[cfg(feature = "collation")]
        {
            let mut key = Vec::with_capacity(2 * name.len());
            // Writing to a vector cannot fail.
            let Ok(()) = self.rules.0.write_sort_key_to(name, &mut key);
            key
        }
        #[cfg(not(feature = "collation"))]
        name.as_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "collation")]
    use super::super::sort_by;
    use super::*;

    #[test]
    #[cfg(feature = "collation")]
    fn names_sort_as_in_firefox() {
        let names = Names::default();
        let mut list = vec![
            "c", "B", "a", "A", "9", "10", "(x)", "-x", "_x", "é", "f", "e", "", "/a", "\\a", "[",
            "zz",
        ];
        sort_by(&mut list, |a, b| names.compare(a, b));
        assert_eq!(list.join(" "), " _x -x (x) [ /a \\a 10 9 a A B c e é f zz");
    }

    #[test]
    fn keys_compare_as_names_do() {
        let names = Names::default();
        let list = [
            "", "a", "A", "b", "á", "a\u{301}", "10", "9", "_", "a b", "ab", "ß", "ss", "日",
            "\u{1}", "a\u{1}", "\u{ad}",
        ];
        for a in list {
            for b in list {
                assert_eq!(names.key(a).cmp(&names.key(b)), names.compare(a, b), "{a:?} {b:?}");
            }
        }
    }
}
