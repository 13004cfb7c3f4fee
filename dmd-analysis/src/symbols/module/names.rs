//! Names of functions: demangled, without hashes, and cached.

use std::sync::Arc;

use cpp_demangle::{DemangleOptions, Symbol};
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
            None => {
                let name: Arc<str> = demangle_cpp(&raw).map_or_else(|| (&*raw).into(), Arc::from);
                Names { function: Arc::clone(&name), name: Some(name) }
            }
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

/// Demangles the name of a C++ function, with its template arguments and without its parameters.
fn demangle_cpp(raw: &str) -> Option<String> {
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = raw.starts_with("_Z").then(|| Symbol::new(raw).ok())??;
    symbol.demangle_with_options(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::{demangle, demangle_cpp};

    #[test]
    fn names_of_cpp_have_their_path_without_parameters() {
        let open = "_ZN7rocksdb2DB4OpenERKNS_7OptionsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPSt10unique_ptrIS0_St14default_deleteIS0_EE";
        let table = [
            (open, Some("rocksdb::DB::Open")),
            (
                "_ZN7rocksdb12_GLOBAL__N_125CreateThreadStatusUpdaterEv",
                Some("rocksdb::(anonymous namespace)::CreateThreadStatusUpdater"),
            ),
            (
                "_ZNSt15__new_allocatorIcE8allocateEmPKv",
                Some("std::__new_allocator<char>::allocate"),
            ),
            ("_Zwrong", None),
            ("sqlite3_open", None),
        ];
        for (raw, expected) in table {
            assert_eq!(demangle_cpp(raw).as_deref(), expected, "{raw}");
        }
    }

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
