//! Errors in the JSON of a breakdown.

use std::{error, fmt};

/// A text that is no breakdown: the place in it, the mistake, and the correct form.
#[derive(Debug)]
#[non_exhaustive]
pub enum BreakdownError {
    /// The text is no JSON.
    Json(serde_json::Error),
    /// The value of `by` is unknown.
    Name {
        /// The path of the part, such as `then.noStack`; empty at the top.
        place: String,
        /// The unknown name.
        name: String,
        /// The names that are known.
        known: Vec<&'static str>,
    },
    /// A part has a property that does not belong to it.
    Property {
        /// The path of the part, such as `then.noStack`; empty at the top.
        place: String,
        /// The value of `by`.
        by: String,
        /// The property.
        name: String,
        /// The properties that belong to the part.
        known: &'static [&'static str],
    },
    /// A part of SpiderMonkey's breakdowns has no counterpart.
    Refused {
        /// The path of the part, such as `then.noStack`; empty at the top.
        place: String,
        /// SpiderMonkey's name.
        name: String,
        /// The reason, and what to write instead.
        reason: &'static str,
    },
    /// A value has the wrong form.
    Shape {
        /// The path of the value, such as `then.depth`; empty at the top.
        place: String,
        /// The correct form.
        wanted: &'static str,
    },
}

impl fmt::Display for BreakdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: &str| match place {
            "" => String::new(),
            place => format!("`{place}`: "),
        };
        match self {
            Self::Json(error) => write!(f, "the breakdown is not JSON: {error}"),
            Self::Name { place, name, known } => {
                let known = known.join(", ");
                write!(f, "{}cannot group by `{name}`; known are {known}", at(place))
            }
            Self::Property { place, by, name, known } => {
                write!(f, "{}`{by}` has no property `{name}`, but {}", at(place), known.join(", "))
            }
            Self::Refused { place, name, reason } => {
                write!(f, "{}`{name}` has no counterpart: {reason}", at(place))
            }
            Self::Shape { place, wanted } => write!(f, "{}must be {wanted}", at(place)),
        }
    }
}

impl error::Error for BreakdownError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            Self::Name { .. }
            | Self::Property { .. }
            | Self::Refused { .. }
            | Self::Shape { .. } => None,
        }
    }
}
