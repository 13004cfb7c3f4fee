//! The value of one field of a report, with the type that it has in the file.

use std::borrow::Cow;
use std::fmt;

/// The value of one field, with the type that it has in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<'a> {
    /// The report has no such field.
    #[default]
    Missing,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as the nearest double.
    Number(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An object or array, as JavaScript converts it into a string: `[object Object]`, `1,2`.
    Composite(Cow<'a, str>),
}

impl Field<'_> {
    /// Returns whether JavaScript's `if` takes the value as true.
    pub fn is_truthy(&self) -> bool {
        match self {
            Field::Missing | Field::Null => false,
            Field::Bool(value) => *value,
            Field::Number(value) => *value != 0.0 && !value.is_nan(),
            Field::Text(text) => !text.is_empty(),
            Field::Composite(_) => true,
        }
    }

    /// Converts the field into one that owns its text.
    pub fn into_owned(self) -> Field<'static> {
        match self {
            Field::Missing => Field::Missing,
            Field::Null => Field::Null,
            Field::Bool(value) => Field::Bool(value),
            Field::Number(value) => Field::Number(value),
            Field::Text(text) => Field::Text(Cow::Owned(text.into_owned())),
            Field::Composite(text) => Field::Composite(Cow::Owned(text.into_owned())),
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Missing => f.write_str("nothing"),
            Field::Null => f.write_str("null"),
            Field::Bool(value) => write!(f, "{value}"),
            Field::Number(value) => write!(f, "{value}"),
            Field::Text(text) => {
                write!(f, "the string {:?}", text.chars().take(80).collect::<String>())
            }
            Field::Composite(_) => f.write_str("an object or array"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_true_where_it_is_for_javascript() {
        for (field, expected) in [
            (Field::Missing, false),
            (Field::Null, false),
            (Field::Bool(false), false),
            (Field::Bool(true), true),
            (Field::Number(0.0), false),
            (Field::Number(-0.0), false),
            (Field::Number(f64::NAN), false),
            (Field::Number(0.1), true),
            (Field::Text("".into()), false),
            (Field::Text("0".into()), true),
            (Field::Composite("".into()), true),
        ] {
            assert_eq!(field.is_truthy(), expected, "{field:?}");
        }
    }
}
