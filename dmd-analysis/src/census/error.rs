//! What can be wrong with the text of a breakdown.

use std::{error, fmt};

/// Why a text is no breakdown: the place in it, what is wrong, and what would be right.
#[derive(Debug)]
#[non_exhaustive]
pub enum BreakdownError {
    /// It is no JSON.
    Json(serde_json::Error),
    /// A name that is not known.
    Name {
        /// As `then.noStack`; empty at the top.
        place: String,
        /// The name.
        name: String,
        /// Those that are.
        known: Vec<&'static str>,
    },
    /// A property that a part of a breakdown does not have.
    Property {
        /// As `then.noStack`; empty at the top.
        place: String,
        /// What the part is called.
        by: String,
        /// The property.
        name: String,
        /// Those that it has.
        known: &'static [&'static str],
    },
    /// A value of the wrong kind.
    Shape {
        /// As `then.depth`; empty at the top.
        place: String,
        /// What it must be.
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
            Self::Name { place, name, known } => write!(
                f,
                "{}nothing is told apart by `{name}`; known are {}",
                at(place),
                known.join(", ")
            ),
            Self::Property { place, by, name, known } => {
                write!(f, "{}`{by}` has no property `{name}`, but {}", at(place), known.join(", "))
            }
            Self::Shape { place, wanted } => write!(f, "{}must be {wanted}", at(place)),
        }
    }
}

impl error::Error for BreakdownError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            Self::Name { .. } | Self::Property { .. } | Self::Shape { .. } => None,
        }
    }
}
