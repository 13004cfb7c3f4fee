//! Defines amounts with JavaScript's semantics: Firefox calculates with any JSON value.

use memreport::snapshot::read::Field;
use std::borrow::Cow;
use std::cmp::Ordering;

/// An amount of any JSON type. The operations are JavaScript's operators.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Amount {
    /// The report has no amount, or the total is not computed yet.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string, or the result of adding to one.
    Text(Box<str>),
    /// An object or array, as the string that JavaScript converts it to.
    Object(Box<str>),
}

impl From<f64> for Amount {
    fn from(number: f64) -> Self {
        Amount::Number(number)
    }
}

impl From<&Field<'_>> for Amount {
    fn from(field: &Field<'_>) -> Self {
        match field {
            Field::Missing => Amount::Undefined,
            Field::Null => Amount::Null,
            Field::Bool(value) => Amount::Bool(*value),
            Field::Number(value) => Amount::Number(*value),
            Field::Text(text) => Amount::Text(text.as_ref().into()),
            Field::Composite(text) => Amount::Object(text.as_ref().into()),
        }
    }
}

impl Amount {
    /// Returns `Number(amount)`.
    pub fn number(&self) -> f64 {
        match self {
            Amount::Undefined => f64::NAN,
            Amount::Null => 0.0,
            Amount::Bool(value) => f64::from(u8::from(*value)),
            Amount::Number(value) => *value,
            Amount::Text(text) | Amount::Object(text) => string_to_number(text),
        }
    }

    /// Returns whether `if (amount)` is true.
    pub fn is_truthy(&self) -> bool {
        match self {
            Amount::Undefined | Amount::Null => false,
            Amount::Bool(value) => *value,
            Amount::Number(value) => *value != 0.0 && !value.is_nan(),
            Amount::Text(text) => !text.is_empty(),
            Amount::Object(_) => true,
        }
    }

    /// Computes `self += other`.
    pub fn add(&mut self, other: &Amount) {
        *self = match (&*self, other) {
            (Amount::Number(a), Amount::Number(b)) => Amount::Number(a + b),
            (a, b) if a.is_string() || b.is_string() => {
                Amount::Text(format!("{}{}", a.string(), b.string()).into())
            }
            (a, b) => Amount::Number(a.number() + b.number()),
        };
    }

    /// Returns `self - other`.
    pub fn minus(&self, other: &Amount) -> Amount {
        Amount::Number(self.number() - other.number())
    }

    /// Compares as `<` and `>` do; `None` if no comparison holds.
    pub fn compare(&self, other: &Amount) -> Option<Ordering> {
        match (self, other) {
            (Amount::Number(a), Amount::Number(b)) => a.partial_cmp(b),
            (Amount::Text(a) | Amount::Object(a), Amount::Text(b) | Amount::Object(b)) => {
                Some(compare_strings(a, b))
            }
            (a, b) => a.number().partial_cmp(&b.number()),
        }
    }

    fn is_string(&self) -> bool {
        matches!(self, Amount::Text(_) | Amount::Object(_))
    }

    /// Returns `String(amount)`.
    fn string(&self) -> Cow<'_, str> {
        match self {
            Amount::Undefined => "undefined".into(),
            Amount::Null => "null".into(),
            Amount::Bool(value) => value.to_string().into(),
            Amount::Number(value) => number_to_string(*value).into(),
            Amount::Text(text) | Amount::Object(text) => Cow::Borrowed(text),
        }
    }
}

/// Compares two strings as `<` does: by UTF-16 code units.
pub fn compare_strings(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Returns `Number(text)`.
fn string_to_number(text: &str) -> f64 {
    let text = trim(text);
    let radix = match text.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ if text.is_empty() => return 0.0,
        _ if is_decimal(text) => return text.parse().unwrap_or(f64::NAN),
        _ => {
            return match text {
                "Infinity" | "+Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                _ => f64::NAN,
            };
        }
    };
    let mut digits = text[2..].chars().map(|digit| digit.to_digit(radix));
    let value = digits.try_fold(0.0, |sum, digit| Some(sum * f64::from(radix) + f64::from(digit?)));
    value.filter(|_| text.len() > 2).unwrap_or(f64::NAN)
}

/// Removes JavaScript's white space around a number.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}')
}

/// Returns whether this is a decimal literal. Rust also parses words (`inf`, `nan`), which are
/// none.
pub(crate) fn is_decimal(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'))
        && text.parse::<f64>().is_ok()
}

/// Returns `String(number)`.
pub(crate) fn number_to_string(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number.is_sign_positive() { "Infinity" } else { "-Infinity" }.into();
    }
    if number == 0.0 {
        return "0".into();
    }
    if number.abs() >= 1e21 || number.abs() < 1e-6 {
        let text = format!("{number:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    format!("{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Amount {
        Amount::Text(text.into())
    }

    #[test]
    fn strings_are_appended_to_and_everything_else_is_added() {
        for (a, b, sum) in [
            (Amount::Number(1.0), Amount::Number(2.5), Amount::Number(3.5)),
            (Amount::Number(0.0), text("5"), text("05")),
            (Amount::Number(1e21), text(""), text("1e+21")),
            (Amount::Number(-0.0), text("x"), text("0x")),
            (Amount::Null, Amount::Bool(true), Amount::Number(1.0)),
            (
                Amount::Number(1.0),
                Amount::Object("[object Object]".into()),
                text("1[object Object]"),
            ),
        ] {
            let mut result = a.clone();
            result.add(&b);
            assert_eq!(result, sum, "{a:?} + {b:?}");
        }
        let mut nothing = Amount::Undefined;
        nothing.add(&Amount::Number(1.0));
        assert!(nothing.number().is_nan());
    }

    #[test]
    fn a_string_is_a_number_where_javascript_reads_one() {
        for (string, number) in [
            (" 12\n", 12.0),
            ("", 0.0),
            ("0x10", 16.0),
            ("0b101", 5.0),
            ("0O17", 15.0),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("Infinity", f64::INFINITY),
            ("+Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(text(string).number(), number, "{string:?}");
        }
        for string in ["inf", "nan", "1 2", "0x", "--1", "e5", "-0x10"] {
            assert!(text(string).number().is_nan(), "{string:?}");
        }
    }

    #[test]
    fn nothing_zero_and_the_empty_string_are_false() {
        for (amount, expected) in [
            (Amount::Undefined, false),
            (Amount::Null, false),
            (Amount::Bool(false), false),
            (Amount::Bool(true), true),
            (Amount::Number(0.0), false),
            (Amount::Number(-0.0), false),
            (Amount::Number(f64::NAN), false),
            (Amount::Number(-1.0), true),
            (Amount::Number(f64::INFINITY), true),
            (text(""), false),
            (text("0"), true),
            (Amount::Object("".into()), true),
        ] {
            assert_eq!(amount.is_truthy(), expected, "{amount:?}");
        }
    }

    #[test]
    fn amounts_become_strings_as_in_javascript() {
        for (amount, expected) in [
            (Amount::Undefined, "undefined"),
            (Amount::Null, "null"),
            (Amount::Bool(true), "true"),
            (Amount::Object("1,2".into()), "1,2"),
            (Amount::Number(f64::NAN), "NaN"),
            (Amount::Number(f64::INFINITY), "Infinity"),
            (Amount::Number(f64::NEG_INFINITY), "-Infinity"),
            (Amount::Number(-0.0), "0"),
            (Amount::Number(-1.5), "-1.5"),
            (Amount::Number(1e-6), "0.000001"),
            (Amount::Number(-1e-7), "-1e-7"),
            (Amount::Number(1e20), "100000000000000000000"),
            (Amount::Number(-1.5e21), "-1.5e+21"),
        ] {
            assert_eq!(amount.string(), expected, "{amount:?}");
        }
    }

    #[test]
    fn differences_are_of_numbers() {
        for (a, b, difference) in [
            (Amount::Number(1.0), Amount::Number(2.5), -1.5),
            (text("7"), text("2"), 5.0),
            (Amount::Bool(true), Amount::Null, 1.0),
        ] {
            assert_eq!(a.minus(&b), Amount::Number(difference), "{a:?} - {b:?}");
        }
        assert!(Amount::Undefined.minus(&Amount::Null).number().is_nan());
    }

    #[test]
    fn strings_are_compared_as_strings_and_with_numbers_as_numbers() {
        assert_eq!(text("10").compare(&text("9")), Some(Ordering::Less));
        assert_eq!(text("10").compare(&Amount::Number(9.0)), Some(Ordering::Greater));
        assert_eq!(Amount::Undefined.compare(&Amount::Number(9.0)), None);
        // U+FF5E is one unit, and greater than the first unit of a character beyond the first
        // plane.
        assert_eq!(compare_strings("\u{ff5e}", "\u{1f600}"), Ordering::Greater);
    }
}
