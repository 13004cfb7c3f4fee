//! Code that the subject programs in `bin` share, and the examples of the documents.

pub mod exercise;

/// The examples of the documents, compiled and run as tests.
#[cfg(doctest)]
mod documents {
    macro_rules! chapters {
        ($($name:ident: $path:literal),* $(,)?) => {
            $(#[doc = include_str!(concat!("../../", $path))] mod $name {})*
        };
    }

    chapters! {
        readme: "README.md",
        introduction: "docs/guide/src/introduction.md",
        getting_started: "docs/guide/src/getting-started.md",
        measuring: "docs/guide/src/measuring.md",
        reporters: "docs/guide/src/reporters.md",
        allocator: "docs/guide/src/allocator.md",
        unreported: "docs/guide/src/unreported.md",
        tests: "docs/guide/src/tests.md",
        running: "docs/guide/src/running.md",
        unmodified: "docs/guide/src/unmodified.md",
        heap: "docs/guide/src/heap.md",
        tree: "docs/guide/src/tree.md",
        recordings: "docs/guide/src/recordings.md",
        profiles: "docs/guide/src/profiles.md",
        page: "docs/guide/src/page.md",
        resident: "docs/guide/src/resident.md",
        production: "docs/guide/src/production.md",
        allocators: "docs/guide/src/allocators.md",
        foreign_types: "docs/guide/src/foreign-types.md",
        faq: "docs/guide/src/faq.md",
        commands: "docs/guide/src/reference/commands.md",
        impls: "docs/guide/src/reference/impls.md",
        census: "docs/guide/src/reference/census.md",
        retained: "docs/guide/src/reference/retained.md",
        exports: "docs/guide/src/reference/exports.md",
        formats: "docs/guide/src/reference/formats.md",
        stability: "docs/guide/src/reference/stability.md",
        tasks: "docs/guide/src/reference/tasks.md",
    }
}
