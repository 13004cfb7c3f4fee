//! Formats numbers as about:memory does: `Intl.NumberFormat` for `en-US`.
//!
//! A half rounds away from zero, by the shortest decimal that reads back as the double: 1.005
//! prints as 1.01, though the double is slightly smaller. Zero keeps its sign, also after rounding.

pub(crate) mod size;

use super::amount::{self, Amount};

/// The unit of an amount, as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// A number of things that never decreases.
    CountCumulative,
    /// A hundredth of a percent.
    Percentage,
    /// A unit that Firefox does not define; such a node cannot be shown.
    Unknown,
}

/// The format of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bytes {
    /// In MB (1,048,576 bytes) with two decimals, as in Firefox.
    #[default]
    Mb,
    /// In bytes, as in Firefox's verbose mode.
    Plain,
    /// In the largest unit with a whole number before the point.
    Auto,
}

/// Formats an amount with its unit: `1.00 MB`, `1,048,576 B`, `17`, `20.20%`.
pub fn amount(amount: &Amount, unit: Unit, bytes: Bytes) -> String {
    match (unit, bytes) {
        (Unit::Bytes, Bytes::Plain) => format!("{} B", plain(amount)),
        (Unit::Bytes, Bytes::Mb) => format!("{} MB", scaled(amount, 1_048_576.0)),
        (Unit::Bytes, Bytes::Auto) => in_fitting_unit(amount),
        (Unit::Percentage, _) => {
            let share = Decimal::from_double(amount.number() / 10_000.0);
            format!("{}%", share.shifted(2).print(Digits { whole: 1, least: 2, most: 2 }))
        }
        (Unit::Count | Unit::CountCumulative | Unit::Unknown, _) => plain(amount),
    }
}

/// Formats a node's share of its tree: `100.0%`, `03.69%`, `-02.04%`.
pub fn fraction(part: &Amount, whole: &Amount) -> String {
    let share = if *whole == Amount::Number(0.0) { 1.0 } else { part.number() / whole.number() };
    if (0.99995..=1.0).contains(&share) {
        return "100.0%".into();
    }
    format!(
        "{}%",
        Decimal::from_double(share).shifted(2).print(Digits { whole: 2, least: 2, most: 2 })
    )
}

/// Formats bytes in the power of 1024 that fits, by its own name: `1.50 MiB`.
pub fn size(bytes: i64) -> String {
    // A double represents sizes of memory exactly.
    in_unit_of(&Amount::Number(bytes as f64), ["KiB", "MiB", "GiB"])
}

/// Formats bytes as `size` does, by the names in Firefox.
fn in_fitting_unit(amount: &Amount) -> String {
    in_unit_of(amount, ["KB", "MB", "GB"])
}

fn in_unit_of(amount: &Amount, [kilo, mega, giga]: [&str; 3]) -> String {
    let size = amount.number().abs();
    let (divisor, name) = match size {
        _ if size >= 1024.0 * 1_048_576.0 => (1024.0 * 1_048_576.0, giga),
        _ if size >= 1_048_576.0 => (1_048_576.0, mega),
        _ if size >= 1024.0 => (1024.0, kilo),
        _ => return format!("{} B", plain(amount)),
    };
    format!("{} {name}", scaled(amount, divisor))
}

fn scaled(amount: &Amount, divisor: f64) -> String {
    Decimal::from_double(amount.number() / divisor).print(Digits { whole: 1, least: 2, most: 2 })
}

/// Formats a number with at most three decimals. The number in a string is never rounded to a
/// double.
fn plain(amount: &Amount) -> String {
    let decimal = match amount {
        Amount::Text(text) | Amount::Object(text) if amount::is_decimal(amount::trim(text)) => {
            Decimal::from_text(amount::trim(text))
        }
        _ => Decimal::from_double(amount.number()),
    };
    decimal.print(Digits { whole: 1, least: 0, most: 3 })
}

/// The number of digits: before the point at least `whole`, after it from `least` to `most`.
#[derive(Clone, Copy)]
struct Digits {
    whole: i32,
    least: i32,
    most: i32,
}

/// A decimal number: 0.`digits` times ten to the power `point`.
struct Decimal {
    negative: bool,
    /// ASCII digits without leading zeros; empty for zero. `Err` contains the text of NaN or
    /// infinity.
    digits: Result<Vec<u8>, &'static str>,
    point: i32,
}

impl Decimal {
    fn from_double(double: f64) -> Self {
        let negative = double.is_sign_negative() && !double.is_nan();
        if !double.is_finite() {
            return Decimal {
                negative,
                digits: Err(if double.is_nan() { "NaN" } else { "∞" }),
                point: 0,
            };
        }
        // The shortest decimal that reads back as this double.
        Decimal { negative, ..Decimal::from_text(&format!("{:e}", double.abs())) }
    }

    /// Parses a decimal literal.
    fn from_text(text: &str) -> Self {
        let negative = text.starts_with('-');
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        // A larger exponent gives infinity or zero too.
        let exponent: i32 =
            exponent.parse().unwrap_or(if exponent.starts_with('-') { -100_000 } else { 100_000 });
        let mantissa = mantissa.trim_start_matches(['+', '-']);
        let (whole, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(rest.bytes()).collect();
        let leading = all.iter().take_while(|&&digit| digit == b'0').count();
        let whole = i32::try_from(whole.len()).unwrap_or(i32::MAX);
        let point = whole
            .saturating_sub(i32::try_from(leading).unwrap_or(i32::MAX))
            .saturating_add(exponent);
        let digits = &all[leading..];
        if digits.is_empty() || point < -100_000 {
            return Decimal { negative, digits: Ok(Vec::new()), point: 0 };
        }
        if point > 99_000 {
            return Decimal { negative, digits: Err("∞"), point: 0 };
        }
        Decimal { negative, digits: Ok(digits.to_vec()), point }
    }

    fn shifted(mut self, places: i32) -> Self {
        self.point += places;
        self
    }

    fn print(self, limits: Digits) -> String {
        let mut text = String::new();
        if self.negative {
            text.push('-');
        }
        let (mut digits, mut point) = match self.digits {
            Ok(digits) => (digits, self.point),
            Err(word) => return text + word,
        };
        round(&mut digits, &mut point, limits.most);
        if digits.is_empty() {
            point = 0;
        }
        let digit = |place: i32| {
            // Place 0 is the first after the point; places before it are negative.
            let index = usize::try_from(place + point);
            char::from(index.ok().and_then(|index| digits.get(index).copied()).unwrap_or(b'0'))
        };
        let whole = point.max(limits.whole);
        for place in -whole..0 {
            text.push(digit(place));
            if place < -1 && (place + 1) % 3 == 0 {
                text.push(',');
            }
        }
        let last = i32::try_from(digits.len()).unwrap_or(i32::MAX) - point;
        let decimals = last.clamp(limits.least, limits.most);
        if decimals > 0 {
            text.push('.');
            (0..decimals).for_each(|place| text.push(digit(place)));
        }
        text
    }
}

/// Rounds to at most `decimals` digits after the point; a half rounds away from zero.
fn round(digits: &mut Vec<u8>, point: &mut i32, decimals: i32) {
    let Ok(kept) = usize::try_from(*point + decimals) else {
        digits.clear();
        return;
    };
    if kept < digits.len() {
        let up = digits[kept] >= b'5';
        digits.truncate(kept);
        if up {
            let nines = digits.iter().rev().take_while(|&&digit| digit == b'9').count();
            digits.truncate(kept - nines);
            match digits.last_mut() {
                Some(last) => *last += 1,
                None => {
                    digits.push(b'1');
                    *point += 1;
                }
            }
        }
    }
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mb(bytes: f64) -> String {
        amount(&bytes.into(), Unit::Bytes, Bytes::Mb)
    }

    fn share(part: f64, whole: f64) -> String {
        fraction(&part.into(), &whole.into())
    }

    fn verbose(text: &str) -> String {
        amount(&Amount::Text(text.into()), Unit::Bytes, Bytes::Plain)
    }

    #[test]
    fn bytes_are_megabytes_of_two_decimals() {
        for (bytes, text) in [
            (0.0, "0.00 MB"),
            (-0.0, "-0.00 MB"),
            (-111.0, "-0.00 MB"),
            (5242.0, "0.00 MB"),
            (5243.0, "0.01 MB"),
            (1_048_576.0 * 1000.0, "1,000.00 MB"),
            (1_048_576.0 * 0.125, "0.13 MB"),
            (1_048_576.0 * -0.125, "-0.13 MB"),
            (1_048_576.0 * 1.005, "1.01 MB"),
            (1_048_576.0 * 999.995, "1,000.00 MB"),
            (1_048_576.0 * 9.996, "10.00 MB"),
            (f64::INFINITY, "∞ MB"),
            (f64::NEG_INFINITY, "-∞ MB"),
            (f64::NAN, "NaN MB"),
        ] {
            assert_eq!(mb(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn counts_have_commas_and_at_most_three_decimals() {
        for (count, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (999.0, "999"),
            (1000.0, "1,000"),
            (-1_234_567.0, "-1,234,567"),
            (1_234_567.678_5, "1,234,567.679"),
            (5.5, "5.5"),
            (0.0004, "0"),
            (-0.0004, "-0"),
            (9_223_372_036_854_775_807.0, "9,223,372,036,854,776,000"),
            (1e21, "1,000,000,000,000,000,000,000"),
        ] {
            assert_eq!(amount(&count.into(), Unit::Count, Bytes::Mb), text, "{count}");
        }
    }

    #[test]
    fn a_percentage_is_a_hundredth_of_its_amount() {
        for (hundredths, text) in [
            (2020.0, "20.20%"),
            (0.0, "0.00%"),
            (1.0, "0.01%"),
            (-12345.0, "-123.45%"),
            (1_234_567.0, "12,345.67%"),
        ] {
            assert_eq!(
                amount(&hundredths.into(), Unit::Percentage, Bytes::Mb),
                text,
                "{hundredths}"
            );
        }
    }

    #[test]
    fn a_share_has_four_digits() {
        for (part, whole, text) in [
            (0.0, 0.0, "100.0%"),
            (5.0, 0.0, "100.0%"),
            (1.0, 1.0, "100.0%"),
            (99_995.0, 100_000.0, "100.0%"),
            (99_994.0, 100_000.0, "99.99%"),
            (99_994.9, 100_000.0, "99.99%"),
            (369.0, 10_000.0, "03.69%"),
            (0.0, 10.0, "00.00%"),
            (0.0, -10.0, "-00.00%"),
            (-204.0, 10_000.0, "-02.04%"),
            (15_306.0, 10_000.0, "153.06%"),
            (105_000.0, 10_000.0, "1,050.00%"),
            (100_001.0, 100_000.0, "100.00%"),
            (f64::INFINITY, f64::INFINITY, "NaN%"),
        ] {
            assert_eq!(share(part, whole), text, "{part} of {whole}");
        }
    }

    #[test]
    fn the_number_in_a_string_is_exact() {
        for (string, text) in [
            ("5", "5 B"),
            ("9007199254740993", "9,007,199,254,740,993 B"),
            ("1.0005", "1.001 B"),
            (" 007 ", "7 B"),
            ("-0", "-0 B"),
            ("0x10", "16 B"),
            ("1e3", "1,000 B"),
            ("", "0 B"),
            ("five", "NaN B"),
        ] {
            assert_eq!(verbose(string), text, "{string:?}");
        }
    }

    #[test]
    fn decimals_of_more_digits_than_anybody_reads_are_infinite() {
        // Each three digits have a comma.
        assert_eq!(verbose("1e98999").len(), "1 B".len() + 98_999 + 98_999 / 3);
        assert_eq!(verbose("1e99000"), "∞ B");
        assert_eq!(verbose("-1e99999999999"), "-∞ B");
        assert_eq!(verbose("1e-99999999999"), "0 B");
    }

    #[test]
    fn automatic_units_leave_a_whole_number_before_the_point() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (1023.0, "1,023 B"),
            (-1024.0, "-1.00 KB"),
            (1_048_576.0 * 1.5, "1.50 MB"),
            (1_073_741_824.0 * 2.0, "2.00 GB"),
        ] {
            assert_eq!(amount(&bytes.into(), Unit::Bytes, Bytes::Auto), text, "{bytes}");
        }
    }
}
