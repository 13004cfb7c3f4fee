//! Names of functions: demangled, without hashes, each made once.

use std::sync::Arc;

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

/// The names of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// With its path, where that is known.
    pub(crate) function: Arc<str>,
    /// Its own name with type arguments, where debug information has it.
    pub(crate) name: Option<Arc<str>>,
}

/// The names made so far, by the place of the raw name in the module's bytes.
///
/// Threads share it: a function that was inlined everywhere is met in every part of the program.
#[derive(Debug, Default)]
pub(crate) struct NameCache(DashMap<(usize, usize), Names, FxBuildHasher>);

impl NameCache {
    /// The names of the function whose raw name is `raw`; `own_name` asks debug information, and only the first time.
    pub(crate) fn names(&self, raw: &[u8], own_name: impl FnOnce() -> Option<Arc<str>>) -> Names {
        let place = (raw.as_ptr().addr(), raw.len());
        if let Some(names) = self.0.get(&place) {
            return names.clone();
        }
        let raw = String::from_utf8_lossy(raw);
        // Made outside the map: no lock is held while debug information is read.
        let names = match demangle(&raw) {
            Some(function) => Names { function: function.into(), name: own_name() },
            None => Names { function: (&*raw).into(), name: Some((&*raw).into()) },
        };
        self.0.insert(place, names.clone());
        names
    }
}

/// The readable form of a mangled Rust name, hash dropped; nothing if it is not one.
pub(crate) fn demangle(raw: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(raw).ok()?;
    Some(format!("{name:#}"))
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn both_manglings_lose_their_hash() {
        let table = [
            ("_ZN7subject7Lexicon6intern17h0123456789abcdefE", Some("subject::Lexicon::intern")),
            ("_RNvMCs1234_7subjectNtB2_7Lexicon6intern", Some("<subject::Lexicon>::intern")),
            (
                "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
                Some("core::ptr::drop_in_place<alloc::string::String>"),
            ),
            ("grow_one<u8, alloc::alloc::Global>", None),
            ("malloc", None),
        ];
        for (raw, expected) in table {
            assert_eq!(demangle(raw).as_deref(), expected, "{raw}");
        }
    }
}
