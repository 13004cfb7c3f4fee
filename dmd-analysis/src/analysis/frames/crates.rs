//! The crates that allocate, also where debug information has lines alone: an inlined function has
//! no path then.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::parts::Parts;
use super::source_file::package_crate;
use super::trim::without_library;
use crate::read::{Dump, TraceId};

/// The crates of a program's source files, from the functions that have a path.
#[derive(Debug)]
pub struct Crates<'d> {
    dump: &'d Dump,
    /// `None` for a file with functions of several crates, such as a module that two programs
    /// share.
    by_file: FxHashMap<&'d str, Option<Cow<'d, str>>>,
}

impl<'d> Crates<'d> {
    /// Collects the crates of the files in the frames of a dump.
    #[must_use]
    pub fn new(dump: &'d Dump) -> Self {
        let mut crates = Self { dump, by_file: FxHashMap::default() };
        for parts in dump.frames.iter().map(Parts::of) {
            // `<T as Trait>::f` is in a file of either crate.
            let is_plain = !parts.function.contains(" as ") && !parts.is_library();
            let Some(file) = parts.file.filter(|_| is_plain) else { continue };
            let Some(krate) = parts.crate_name() else { continue };
            let known = crates.by_file.entry(file).or_insert_with(|| Some(krate.clone()));
            if known.as_ref() != Some(&krate) {
                *known = None;
            }
        }
        crates
    }

    /// Returns the crate to which a block with this stack belongs: the crate of the innermost
    /// function that is not a library's. `None` if the functions do not show it.
    #[must_use]
    pub fn of(&self, trace: TraceId) -> Option<Cow<'d, str>> {
        self.of_first(&without_library(self.dump, self.dump.trace(trace)))
    }

    /// Returns the crate of the first of these frames: by its file or path, by other functions of
    /// its file, by the file's package, or by the function that it is inlined into.
    pub(crate) fn of_first(&self, frames: &[Parts<'d>]) -> Option<Cow<'d, str>> {
        let first = frames.first()?;
        let by_file = || self.by_file.get(first.file?)?.clone();
        let by_package = || package_crate(first.file?);
        let around = || frames.iter().find(|parts| parts.out_of_line)?.crate_of_path();
        first.crate_name().or_else(by_file).or_else(by_package).or_else(around)
    }
}

#[cfg(test)]
mod tests {
    use super::Crates;
    use crate::analysis::frames::Parts;
    use crate::read::{Dump, Frame, Symbol};

    fn frame(function: &str, file: &str, inlined: bool) -> Frame {
        let symbol = Symbol {
            function: function.into(),
            name: None,
            file: Some(file.into()),
            line: Some(1),
            inlined,
            folded: false,
            module: None,
        };
        Frame { text: "".into(), symbol: Some(Box::new(symbol)) }
    }

    #[test]
    fn inlined_functions_without_a_path_have_a_crate() {
        let frames = vec![
            frame("load<u8>", "/me/shop/src/bin/till.rs", true),
            frame("till::run", "/me/shop/src/bin/till.rs", false),
            frame("price", "/me/goods/src/price.rs", true),
            frame("tables", "gen.rs", true),
            frame("one of till::a, till::b", "", false),
            frame("one of till::a, goods::b and 3 more", "", false),
        ];
        let dump = Dump { frames, ..Dump::default() };
        let parts: Vec<Parts<'_>> = dump.frames.iter().map(Parts::of).collect();
        let crates = Crates::new(&dump);
        let found: Vec<_> = (0..parts.len()).map(|at| crates.of_first(&parts[at..])).collect();
        let found: Vec<_> = found.iter().map(|name| name.as_deref().unwrap_or("?")).collect();
        assert_eq!(found, ["till", "till", "goods", "till", "till", "goods or till"]);
    }
}
