//! Parses the values of flags.

use std::time::Duration;

/// Parses a time of at most an hour: `0.25`, `250ms`, `2s`, `1min`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    duration(text)
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(3600))
        .ok_or_else(|| "a time of at most an hour, as `0.25`, `250ms`, `2s` or `1min`".to_owned())
}

/// The longest interval: a year.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Parses the time between two snapshots, written like other times.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    duration(text)
        .filter(|every| (Duration::from_millis(10)..=LONGEST).contains(every))
        .ok_or_else(|| "a time from 10 ms to a year, as `0.25`, `250ms`, `2s` or `1min`".to_owned())
}

/// Parses a time; without a unit it is in seconds.
fn duration(text: &str) -> Option<Duration> {
    let units = [("ms", 1e-3), ("min", 60.0), ("s", 1.0), ("h", 3600.0), ("", 1.0)];
    let of_unit = |(unit, size)| Some((text.strip_suffix(unit)?, size));
    let (digits, size): (&str, f64) = units.into_iter().find_map(of_unit)?;
    let number: f64 = digits.trim_end().parse().ok()?;
    Duration::try_from_secs_f64(number * size).ok()
}

/// Parses a share from 0 to 100: `0.5` or `0.5%`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    number.ok().filter(|percent| (0.0..=100.0).contains(percent)).ok_or("write it as `0.5%`".into())
}

/// Parses an address as dumps and debuggers write it, with or without `0x`.
pub(crate) fn hexadecimal(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| format!("not a hexadecimal address: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_alike_for_every_flag() {
        let table = [("0.25", 250), ("250ms", 250), ("2s", 2000), ("2 s", 2000), ("1min", 60_000)];
        for (text, ms) in table {
            assert_eq!(seconds(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "2x", "-1", "nan", "2ss", "inf", "1e99"] {
            assert!(seconds(text).is_err() && interval(text).is_err(), "{text}");
        }
        assert!(seconds("2h").is_err() && interval("2h").is_ok());
        // The clock could not represent the moment after it.
        assert!(interval("1e19").is_err());
    }
}
