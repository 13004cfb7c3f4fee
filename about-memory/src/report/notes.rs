//! Describes the limits of a collection as sentences. Firefox's page does not show them.

use memreport::snapshot::read::{Own, OwnMissed, SizeSource};

/// Describes the reporters that a snapshot misses, if there are any.
pub(crate) fn incomplete(missed: &[OwnMissed]) -> Option<String> {
    if missed.is_empty() {
        return None;
    }
    let of: Vec<_> =
        missed.iter().map(|missed| format!("{} ({})", missed.reporter, missed.reason)).collect();
    Some(format!(
        "incomplete: missed {}; their memory is in heap-unclassified-or-missed",
        of.join(", ")
    ))
}

/// Returns the notes of a file that limit its figures: missed reporters, and what changed during
/// the collection.
pub(crate) fn of_figures(own: &Own) -> Vec<String> {
    let mut sentences = Vec::from_iter(incomplete(&own.missed));
    sentences.extend(own.notes.iter().cloned());
    sentences
}

/// Returns the notes of a file about its own collection.
pub fn of(own: &Own) -> Vec<String> {
    let mut sentences = of_figures(own);
    if own.sizes == Some(SizeSource::Layout) {
        sentences.push(
            "sizes are requested sizes, without slop: the program declares no allocator of memreport".into(),
        );
    }
    sentences.extend(own.skipped.iter().map(|skipped| {
        let place = match (&*skipped.file, skipped.line) {
            ("", _) => String::new(),
            (file, 0) => format!(" ({file})"),
            (file, line) => format!(" ({file}:{line})"),
        };
        format!("not measured: `{}.{}`{place}: {}", skipped.owner, skipped.field, skipped.reason)
    }));
    if !own.unknown.is_empty() {
        let unknown = own.unknown.join(", ");
        sentences.push(format!(
            "the file holds what this version does not know: {unknown}; a later about-memory may"
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use memreport::snapshot::read::Skipped;

    #[test]
    fn what_a_collection_lacks_is_said_in_sentences() {
        let skipped = |file: &str, line| Skipped {
            owner: "Index".into(),
            field: "cache".into(),
            reason: "owned by the window".into(),
            file: file.into(),
            line,
        };
        let own = Own {
            notes: vec!["`explicit/index` was busy".into()],
            sizes: Some(SizeSource::Layout),
            skipped: vec![skipped("index.rs", 41), skipped("index.rs", 0), skipped("", 0)],
            unknown: vec!["colour".into()],
            ..Own::default()
        };
        insta::assert_snapshot!(of(&own).join("\n"), @r"
        `explicit/index` was busy
        sizes are requested sizes, without slop: the program declares no allocator of memreport
        not measured: `Index.cache` (index.rs:41): owned by the window
        not measured: `Index.cache` (index.rs): owned by the window
        not measured: `Index.cache`: owned by the window
        the file holds what this version does not know: colour; a later about-memory may
        ");
        assert_eq!(
            of(&Own { sizes: Some(SizeSource::Allocator), ..Own::default() }),
            Vec::<String>::new()
        );
    }
}
