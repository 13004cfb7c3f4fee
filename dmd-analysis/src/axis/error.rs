//! Errors in the words for axes.

use std::{error, fmt};

use super::Axis;

/// A text that names no axis, or none that makes sense where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AxisError {
    /// The word is unknown.
    Unknown {
        /// The word.
        word: String,
    },
    /// The axis makes no sense here.
    Unsupported {
        /// The name of the axis.
        name: &'static str,
        /// The names of the axes that are supported here.
        supported: &'static [&'static str],
    },
    /// A number follows an axis that cannot be cut.
    NoDepth {
        /// The word and the number.
        word: String,
    },
    /// The depth is no number, or 0.
    Depth {
        /// The word and the depth.
        word: String,
    },
    /// An axis is named twice, which would not split the groups any further.
    Repeated {
        /// The name of the axis.
        name: &'static str,
    },
}

impl fmt::Display for AxisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { word } => {
                let known: Vec<&str> = Axis::words().iter().map(|word| word.name).collect();
                write!(f, "cannot group by `{word}`; known are {}", known.join(", "))
            }
            Self::Unsupported { name, supported } => {
                write!(f, "cannot group by `{name}` here, but by {}", supported.join(", "))
            }
            Self::NoDepth { word } => write!(
                f,
                "`{word}`: must be without a number: only `reporter` and `stack` can be cut"
            ),
            Self::Depth { word } => write!(f, "`{word}`: must be cut at a number from 1 on"),
            Self::Repeated { name } => write!(f, "`{name}`: must be named only once"),
        }
    }
}

impl error::Error for AxisError {}
