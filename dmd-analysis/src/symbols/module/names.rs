//! Names of functions: demangled, without hashes, and cached.

use std::sync::Arc;

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

/// The names of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// The name with its path, if that is known.
    pub(crate) function: Arc<str>,
    /// The name with type arguments, if debug information has it.
    pub(crate) name: Option<Arc<str>>,
}

/// A cache of names, by the position of the raw name in the module's bytes.
///
/// Threads share it, because a function may be inlined in every part of the program.
#[derive(Debug, Default)]
pub(crate) struct NameCache(DashMap<(usize, usize), Names, FxBuildHasher>);

impl NameCache {
    /// Returns the names of a function by its raw name. `own_name` reads debug information, and is
    /// only called once.
    pub(crate) fn names(&self, raw: &[u8], own_name: impl FnOnce() -> Option<Arc<str>>) -> Names {
        let place = (raw.as_ptr().addr(), raw.len());
        if let Some(names) = self.0.get(&place) {
            return names.clone();
        }
        let raw = String::from_utf8_lossy(raw);
        // Computed outside of the map, so that no lock is held while debug information is read.
        let names = match demangle(&raw) {
            Some(function) => Names { function: function.into(), name: own_name() },
            None => Names { function: (&*raw).into(), name: Some((&*raw).into()) },
        };
        self.0.insert(place, names.clone());
        names
    }
}

/// Demangles a Rust name and drops the hash. Returns `None` for any other name.
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
