//! Attributes blocks of C's functions that no reporter claims: to the function that requested them,
//! and its library.
//!
//! The path is `explicit/c-heap/LIBRARY/FUNCTION`. The C and C++ libraries allocate for their
//! callers (`strdup`, `operator new`), also where a program contains their code: the innermost
//! function outside of them counts.

use std::collections::BTreeMap;
use std::path::Path;

use super::origin::Origins;
use super::symbols;
use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;
use crate::mem::sys::{self, Module};
use crate::sample::plan::WholePlan;
use crate::stack::own_code;
use crate::stack::site::{self, Site};

/// The beginnings of the file names of libraries that allocate for their callers.
const FOR_OTHERS: [&str; 7] = [
    "libc.so",
    "libc-",
    "libpthread",
    "libstdc++.so",
    "libc++.so",
    "libdmd_preload.so",
    "ld-linux",
];

/// The functions that have requested blocks, by return address. Nothing of it is on the heap.
pub(super) struct Requesters {
    /// The code of libraries that allocate for their callers.
    for_others: PageList<(usize, usize)>,
    /// The return addresses seen so far.
    returns: LocalInterner<(u32, u64)>,
    /// By number of the return address: the start of the function.
    functions: PageList<usize>,
}

impl Requesters {
    /// Finds the libraries that allocate for their callers. It takes the linker's lock.
    pub(super) fn find(WholePlan { hooks, .. }: WholePlan) -> Self {
        let mut for_others = PageList::new();
        if hooks.has_c_heap() {
            let is_for_others = |module: &Module| {
                let name = file_name(&module.path);
                FOR_OTHERS.iter().any(|beginning| name.starts_with(beginning))
            };
            let segments =
                sys::modules().into_iter().filter(is_for_others).flat_map(|found| found.segments);
            segments.for_each(|segment| _ = for_others.push(segment));
        }
        Requesters { for_others, returns: LocalInterner::new(), functions: PageList::new() }
    }

    /// Returns the start of the function that requested the blocks of a site, or 0 if that is not
    /// known.
    pub(super) fn of(&mut self, site: Site, origins: &Origins) -> usize {
        let for_others = self.for_others.as_slice();
        let is_for_others = |frame: usize| {
            for_others.iter().any(|(low, high)| (*low..*high).contains(&frame))
                || origins.is_for_others(frame)
        };
        let mut frames = site::frames(site.stack).peekable();
        let innermost = frames.peek().copied();
        let Some(frame) = frames.find(|frame| !is_for_others(*frame)).or(innermost) else {
            return 0;
        };
        let Some(number) = self.returns.intern((0, frame as u64)) else { return 0 };
        let known = self.functions.as_slice().get(number as usize).copied();
        known.unwrap_or_else(|| {
            let function = own_code::function_of(frame).unwrap_or(frame);
            self.functions.push(function);
            function
        })
    }
}

/// Returns the paths of the reports for blocks that these functions have requested, in their order.
pub(super) fn paths(functions: &[u64]) -> Vec<String> {
    if functions.is_empty() {
        return Vec::new();
    }
    let mut names = BTreeMap::new();
    for module in sys::modules() {
        let contains = |function: &u64| {
            let in_segment =
                |&(low, high): &(usize, usize)| (low as u64..high as u64).contains(function);
            module.segments.iter().any(in_segment)
        };
        let mut own: Vec<_> = functions.iter().copied().filter(contains).collect();
        own.sort_unstable();
        let symbols = names_of(&module, &own);
        let library = file_name(&module.path);
        for function in own {
            let name = symbols.get(&in_file(&module, function));
            let name = name.map_or("(no symbol)", String::as_str);
            // As in all paths of reports, a slash within a part is written as a backslash.
            let part = |text: &str| text.replace('/', "\\");
            names.insert(function, format!("explicit/c-heap/{}/{}", part(library), part(name)));
        }
    }
    let path = |function: &u64| names.get(function).cloned();
    let unknown = "explicit/c-heap/(no stack was recorded)";
    functions.iter().map(|function| path(function).unwrap_or_else(|| unknown.to_owned())).collect()
}

/// Returns the names of functions of a module by their addresses in its file; none if the file
/// cannot be read.
fn names_of(module: &Module, functions: &[u64]) -> BTreeMap<u64, String> {
    if functions.is_empty() {
        return BTreeMap::new();
    }
    let functions: Vec<_> = functions.iter().map(|function| in_file(module, *function)).collect();
    let build_id = module.build_id.as_deref();
    let names = |file| symbols::names(&file, build_id, &functions);
    symbols::file_of(module).and_then(names).unwrap_or_default()
}

/// Returns the address in a module's file of an address in memory.
fn in_file(module: &Module, address: u64) -> u64 {
    address.wrapping_sub(module.bias as u64)
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}
