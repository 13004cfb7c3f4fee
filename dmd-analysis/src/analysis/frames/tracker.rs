//! The tracker's own frames, recognised by the text of a function's path or of a source file's
//! path.

/// The modules of the crate `dmd` that run inside the allocator's hooks. `track` held all of them
/// in earlier builds.
const MODULES: [&str; 8] = ["hook", "stack", "table", "sample", "event", "collect", "mem", "track"];

/// The modules of earlier builds that read dumps in another process, or write them.
const READERS: [&str; 4] = ["analysis", "dump", "symbols", "export"];

/// Returns whether a function's path begins in the tracker: `dmd::hook::allocator::alloc`.
pub(super) fn is_tracker_function(path: &str) -> bool {
    path.strip_prefix("dmd::").is_some_and(begins_with_module)
}

/// Returns whether the text of a frame has a path of the tracker anywhere, as in `<dmd::hook::Dmd
/// as …>::alloc`.
pub(super) fn names_tracker(text: &str) -> bool {
    text.match_indices("dmd::").any(|(at, found)| {
        let is_whole_word =
            !text[..at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c));
        is_whole_word && begins_with_module(&text[at + found.len()..])
    })
}

fn begins_with_module(path: &str) -> bool {
    path.split_once("::").is_some_and(|(module, _)| MODULES.contains(&module))
}

/// Returns whether a source file belongs to the tracker's crate: `dmd/src/hook/allocator.rs` of a
/// checkout, or `memreport-dmd-0.1.0/src/hook/allocator.rs` of a registry.
pub(super) fn is_tracker_file(file: &str) -> bool {
    let is_crate = |part: &str| part == "dmd" || part.starts_with("memreport-dmd-");
    let mut parts = file.split('/').skip_while(|part| !is_crate(part));
    let in_crate = parts.next().is_some() && parts.next() == Some("src");
    in_crate && parts.next().is_some_and(|part| !READERS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::{is_tracker_file, is_tracker_function, names_tracker};

    #[test]
    fn functions_of_the_tracker_are_recognised_in_every_form_of_text() {
        let table = [
            // path of the function, begins in the tracker, names it anywhere
            ("dmd::hook::allocator::alloc", true, true),
            ("dmd::stack::walk::walk", true, true),
            ("dmd::table::blocks::Blocks::insert", true, true),
            ("dmd::sample::plan::Plan::path", true, true),
            ("dmd::event::ring::Ring::push", true, true),
            ("dmd::collect::collection::collect", true, true),
            ("dmd::mem::pages::Pages::grow", true, true),
            ("dmd::track::sites::here", true, true),
            ("#00: dmd::hook::allocator::alloc (dmd/src/hook/allocator.rs:9)", false, true),
            (
                "<dmd::hook::allocator::Dmd<A> as core::alloc::global::GlobalAlloc>::alloc",
                false,
                true,
            ),
            ("<dmd::mem::interner::Interner>::intern", false, true),
            ("core::ptr::drop_in_place<dmd::mem::pages::Pages>", false, true),
            ("dmd::testing::fully_reported", false, false),
            ("dmd::hooked::f", false, false),
            ("dmd::hook", false, false),
            ("mydmd::hook::f", false, false),
            ("subject::dmd::hook::f", false, false),
            ("mozilla::dmd::table::f", false, false),
        ];
        for (text, begins, names) in table {
            assert_eq!((is_tracker_function(text), names_tracker(text)), (begins, names), "{text}");
        }
    }

    #[test]
    fn files_of_the_tracker_are_recognised_in_a_checkout_and_in_a_registry() {
        const REGISTRY: &str = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let table = [
            ("dmd/src/hook/allocator.rs".to_owned(), true),
            ("/home/me/memreport/dmd/src/track/hooks.rs".to_owned(), true),
            (format!("{REGISTRY}/memreport-dmd-0.1.0/src/hook/allocator.rs"), true),
            (format!("{REGISTRY}/memreport-dmd-0.1.0/src/lib.rs"), true),
            // Earlier builds had the readers of dumps in the same crate.
            ("/home/me/memreport/dmd/src/analysis/digest.rs".to_owned(), false),
            (format!("{REGISTRY}/memreport-0.1.0/src/lib.rs"), false),
            ("/home/me/dmd/benches/hook.rs".to_owned(), false),
            ("src/dmd.rs".to_owned(), false),
        ];
        for (file, expected) in table {
            assert_eq!(is_tracker_file(&file), expected, "{file}");
        }
    }
}
