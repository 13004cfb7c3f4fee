//! The blocks of a failed check as `about-memory run` prints them.

use crate::collect::Dump;

/// The blocks to list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Listed {
    Unreported,
    Twice,
}

/// Writes the places with types, fields, lines and suggestions. Returns false, and writes nothing,
/// without the feature `explain`.
#[cfg(feature = "explain")]
pub(super) fn write(dump: &Dump, listed: Listed, text: &mut String) -> bool {
    use memreport::__private::{Findings, as_own};
    use memreport_analysis::analysis::{Class, ExplainOptions, explain};
    use memreport_analysis::read::read_slice;
    use memreport_analysis::symbols::{Options, Symboliser};
    use std::fmt::Write as _;

    as_own(|| {
        let mut json = Vec::new();
        if dump.write(&mut json).is_err() {
            return false;
        }
        let Ok(mut read) = read_slice(&json) else { return false };
        Symboliser::new(Options::default()).symbolicate(&mut read);
        let explained = explain(&read, &ExplainOptions::default());
        let places = explained.places(match listed {
            Listed::Unreported => Class::Unreported,
            Listed::Twice => Class::TwiceReported,
        });
        for place in places.iter().take(MAX_PLACES) {
            let blocks = if place.totals.blocks == 1 { "block" } else { "blocks" };
            let (bytes, count) = (place.totals.usable(), place.totals.blocks);
            let _ = writeln!(
                text,
                "  {bytes} bytes in {count} {blocks}: {}",
                place.site.block_type.describe()
            );
            for reporter in &place.reporters {
                let _ = writeln!(text, "     reported by {reporter}");
            }
            for frame in place.site.frames.iter().take(3) {
                let _ = writeln!(text, "     {frame}");
            }
            if let Some(suggestion) = &place.suggestion {
                let _ = writeln!(text, "     → {suggestion}");
            }
        }
        if places.len() > MAX_PLACES {
            let rest: i128 =
                places.iter().skip(MAX_PLACES).map(|place| place.totals.usable()).sum();
            let _ = writeln!(text, "  {rest} bytes in {} more places", places.len() - MAX_PLACES);
        }
        true
    })
}

/// The maximum number of places that an error lists.
#[cfg(feature = "explain")]
const MAX_PLACES: usize = 10;

/// Writes nothing: without the feature `explain` there are no types and suggestions.
#[cfg(not(feature = "explain"))]
pub(super) fn write(_: &Dump, _: Listed, _: &mut String) -> bool {
    false
}
