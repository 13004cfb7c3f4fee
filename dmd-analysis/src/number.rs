//! Numbers as dmd.py prints them.

/// Returns a number with commas: `1,234,567`.
#[must_use]
pub fn commas(n: i128) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if n < 0 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun: `1 block`, `2,000 blocks`.
#[must_use]
pub fn counted(n: i128, noun: &str) -> String {
    format!("{} {noun}{}", commas(n), if n == 1 { "" } else { "s" })
}

/// Returns the nearest number of 64 bits. JSON's readers take no greater ones, and `json!` panics
/// on them; sums of a damaged dump may be greater.
#[must_use]
pub(crate) fn saturated(n: i128) -> i64 {
    i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX })
}

/// Returns `part` in percent of `whole`, or 0 if `whole` is 0. The result is rounded once, as in
/// Python.
#[must_use]
pub fn percent(part: i128, whole: i128) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    let part = part.saturating_mul(100);
    let quotient = divide(part.unsigned_abs(), whole.unsigned_abs());
    if (part < 0) != (whole < 0) { -quotient } else { quotient }
}

const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

#[expect(clippy::cast_precision_loss, reason = "the division rounds to nearest")]
fn divide(a: u128, b: u128) -> f64 {
    if a <= EXACT && b <= EXACT {
        return a as f64 / b as f64;
    }
    // The quotient is longer than an f64, with a sticky last bit, so that it is rounded once.
    let shift = a.leading_zeros().min(127);
    let shifted = a << shift;
    let sticky = u128::from(!shifted.is_multiple_of(b));
    ((shifted / b) | sticky) as f64 / (1_u128 << shift) as f64
}

#[cfg(test)]
mod tests {
    use super::{EXACT, commas, divide, percent};

    #[test]
    fn numbers_are_python_s() {
        let table =
            [(0, "0"), (999, "999"), (1_000, "1,000"), (-1_234_567, "-1,234,567"), (-100, "-100")];
        for (n, expected) in table {
            assert_eq!(commas(n), expected);
        }
    }

    #[test]
    fn a_quotient_is_rounded_once() {
        let last = 1.0 / (1_u64 << 53) as f64;
        for (a, b, expected) in [
            (1, 4, 0.25),
            (0, EXACT + 1, 0.0),
            (1, EXACT, last),
            // Rounded to f64 before the division, these would be the same as with `EXACT`.
            (1, EXACT + 1, last.next_down()),
            (EXACT + 1, EXACT + 1, 1.0),
            (EXACT + 3, 1, 9_007_199_254_740_996.0),
            (EXACT + 1, 3, 3_002_399_751_580_331.0),
        ] {
            assert_eq!(divide(a, b), expected, "{a} of {b}");
        }
    }

    #[test]
    fn percentages_are_python_s() {
        let table = [
            (1, 3, "33.33"),
            (0, -5, "-0.00"),
            (5, 0, "0.00"),
            (-7, 3, "-233.33"),
            // Rounded to f64 before the division, these would end in 7, 5 and 5.
            (3_732_332_072_109_776_669, 2_427_296_245_640_930_426, "153.76"),
            (2_807_389_635_991_403_409, 4_467_164_668_615_487_960, "62.84"),
            (6_350_858_651_039_073_678, 3_704_312_549_820_101_886, "171.44"),
        ];
        for (part, whole, expected) in table {
            assert_eq!(format!("{:.2}", percent(part, whole)), expected, "{part} of {whole}");
        }
    }
}
