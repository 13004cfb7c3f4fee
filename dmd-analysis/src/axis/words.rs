//! The words for axes on the command line: `type`, `stack:3`.

use std::num::NonZeroU32;
use std::str::FromStr;

use super::{Axis, AxisError, StackCut};

/// A word for an axis.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Word {
    /// The name of the axis.
    pub name: &'static str,
    /// Other spellings that are accepted.
    pub aliases: &'static [&'static str],
    /// The property that blocks are grouped by, for help texts.
    pub meaning: &'static str,
    axis: fn() -> Axis,
}

/// Every axis, in the order of help texts and error messages.
const WORDS: [Word; 13] = [
    Word {
        name: "reporter",
        aliases: &["reporters"],
        meaning: "The paths of the reports that count them",
        axis: Axis::reporter,
    },
    Word {
        name: "type",
        aliases: &["types"],
        meaning: "The type, as far as debug information contains it",
        axis: || Axis::Type,
    },
    Word {
        name: "stack",
        aliases: &["stacks", "allocation-stack", "allocationStack"],
        meaning: "The call stack that allocated them",
        axis: Axis::stack,
    },
    Word {
        name: "site",
        aliases: &["sites"],
        meaning: "The innermost frame of the program's own code",
        axis: || Axis::Site,
    },
    Word {
        name: "state",
        aliases: &["states", "coarseType"],
        meaning: "Reported never, once, or twice and more often",
        axis: || Axis::State,
    },
    Word {
        name: "file",
        aliases: &["files", "filename"],
        meaning: "The source file of the innermost frame of the program's own code",
        axis: || Axis::File,
    },
    Word {
        name: "field",
        aliases: &["fields"],
        meaning: "The type and field that report them",
        axis: || Axis::Field,
    },
    Word {
        name: "thread",
        aliases: &["threads"],
        meaning: "The thread that allocated them",
        axis: || Axis::Thread,
    },
    Word {
        name: "scope",
        aliases: &["scopes"],
        meaning: "The scope of the program that they were allocated in",
        axis: || Axis::Scope,
    },
    Word {
        name: "crate",
        aliases: &["crates"],
        meaning: "The crate whose code allocated them",
        axis: || Axis::Crate,
    },
    Word { name: "size", aliases: &["sizes"], meaning: "Their usable size", axis: || Axis::Size },
    Word {
        name: "size-class",
        aliases: &["size-classes", "sizeClass"],
        meaning: "Their usable size, up to powers of two",
        axis: || Axis::SizeClass,
    },
    Word {
        name: "age",
        aliases: &["ages"],
        meaning: "The time since their allocation, where the dump contains it",
        axis: Axis::age,
    },
];

impl Axis {
    /// Returns the words for all axes.
    #[must_use]
    pub fn words() -> &'static [Word] {
        &WORDS
    }

    /// Returns the name of the axis on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Axis::Reporter { .. } => "reporter",
            Axis::Type => "type",
            Axis::Stack(_) => "stack",
            Axis::Site => "site",
            Axis::State => "state",
            Axis::File => "file",
            Axis::Field => "field",
            Axis::Thread => "thread",
            Axis::Scope => "scope",
            Axis::Crate => "crate",
            Axis::Size => "size",
            Axis::SizeClass => "size-class",
            Axis::Age { .. } => "age",
        }
    }

    /// Returns the text that a table shows for blocks without a key.
    pub(crate) fn missing_text(&self) -> &'static str {
        match self {
            Axis::Stack(_) | Axis::Site => "(no stack was recorded)",
            Axis::Reporter { .. } | Axis::Field => "(not reported)",
            Axis::Scope => "(in no scope)",
            _ => "(unknown)",
        }
    }

    /// Returns the axis if its name is one of `supported`.
    ///
    /// # Errors
    ///
    /// Returns [`AxisError::Unsupported`] with the names that are supported.
    pub fn one_of(self, supported: &'static [&'static str]) -> Result<Self, AxisError> {
        if supported.contains(&self.name()) {
            Ok(self)
        } else {
            Err(AxisError::Unsupported { name: self.name(), supported })
        }
    }
}

impl FromStr for Axis {
    type Err = AxisError;

    /// Reads the word for an axis. A number after a colon cuts stacks and paths: `stack:3`.
    fn from_str(text: &str) -> Result<Self, AxisError> {
        let text = text.trim();
        let (name, depth) = match text.split_once(':') {
            Some((name, depth)) => (name, Some(depth)),
            None => (text, None),
        };
        let is_word = |word: &&Word| word.name == name || word.aliases.contains(&name);
        let word = WORDS.iter().find(is_word);
        let axis = word.ok_or_else(|| AxisError::Unknown { word: name.to_owned() })?.axis;
        let Some(depth) = depth else { return Ok(axis()) };
        let depth: Result<NonZeroU32, _> = depth.parse();
        let bad_depth = |_| AxisError::Depth { word: text.to_owned() };
        match axis() {
            Axis::Reporter { .. } => Ok(Axis::Reporter { depth: Some(depth.map_err(bad_depth)?) }),
            Axis::Stack(cut) => {
                Ok(Axis::Stack(StackCut { depth: Some(depth.map_err(bad_depth)?), ..cut }))
            }
            _ => Err(AxisError::NoDepth { word: text.to_owned() }),
        }
    }
}
