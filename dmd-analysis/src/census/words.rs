//! The short form of breakdowns, for people: `reporter:2,type,stack:3`.

use std::num::NonZeroU32;

use super::breakdown::{Axis, Breakdown, CoarseType, DEFAULT_EDGES, Split};
use super::error::BreakdownError;

/// What a person can ask for, and what it is called in JSON.
const WORDS: [&str; 11] = [
    "reporter", "type", "stack", "state", "file", "field", "thread", "scope", "crate", "size",
    "age",
];

impl Breakdown {
    /// Reads the short form: what blocks are told apart by, each within the one before, `:N` behind a word for so many frames or
    /// segments of a path. Blocks without an answer are told apart by what follows all the same.
    ///
    /// # Errors
    ///
    /// Words that are not known, and numbers where there is nothing to cut.
    ///
    /// # Examples
    ///
    /// ```
    /// use memreport_analysis::census::Breakdown;
    ///
    /// let breakdown = Breakdown::of_words("type,stack:3")?;
    /// let stack = r#"{"by":"allocationStack","depth":3}"#;
    /// assert_eq!(breakdown.to_json(), format!(r#"{{"by":"type","other":{stack},"then":{stack}}}"#));
    /// # Ok::<(), memreport_analysis::census::BreakdownError>(())
    /// ```
    pub fn of_words(words: &str) -> Result<Self, BreakdownError> {
        let mut breakdown = Breakdown::default();
        let mut asked = Vec::new();
        for word in words.rsplit(',').map(str::trim) {
            let (name, depth) = cut(word)?;
            let axis = axis(name, depth)?;
            let question = axis.as_ref().map(Axis::name);
            // To ask again tells nothing, and doubles what there is to answer.
            if asked.contains(&question) {
                return Err(BreakdownError::Shape { place: word.into(), wanted: "asked for once" });
            }
            asked.push(question);
            breakdown = match axis {
                None => CoarseType::all(breakdown).into(),
                Some(axis) => Split::by(axis).otherwise(breakdown.clone()).then(breakdown).into(),
            };
        }
        Ok(breakdown)
    }
}

/// `stack:3` into its parts.
fn cut(word: &str) -> Result<(&str, Option<NonZeroU32>), BreakdownError> {
    let Some((name, depth)) = word.split_once(':') else { return Ok((word, None)) };
    let shape = |wanted| BreakdownError::Shape { place: word.into(), wanted };
    if !matches!(name, "reporter" | "stack" | "allocationStack") {
        return Err(shape("without a number: only `reporter` and `stack` can be cut"));
    }
    let depth = depth.parse().map_err(|_| shape("cut at a number from 1 on"))?;
    Ok((name, Some(depth)))
}

/// What a word stands for: `None` is the state.
fn axis(word: &str, depth: Option<NonZeroU32>) -> Result<Option<Axis>, BreakdownError> {
    Ok(Some(match word {
        "state" | "coarseType" => return Ok(None),
        "reporter" => Axis::Reporter { depth },
        "type" => Axis::Type,
        "stack" | "allocationStack" => Axis::AllocationStack { depth, invert: false },
        "file" | "filename" => Axis::Filename,
        "field" => Axis::Field,
        "thread" => Axis::Thread,
        "scope" => Axis::Scope,
        "crate" => Axis::Crate,
        "size" | "sizeClass" => Axis::SizeClass,
        "age" => Axis::Age { edges: DEFAULT_EDGES.into() },
        _ => {
            let (place, name) = (String::new(), word.to_owned());
            return Err(BreakdownError::Name { place, name, known: WORDS.into() });
        }
    }))
}
