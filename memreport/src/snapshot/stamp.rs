//! Formats times as parts of file names: `20261121-230105-123`, in UTC. They sort by time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The length of a stamp in bytes.
#[cfg(unix)]
pub(crate) const LENGTH: usize = "20261121-230105-123".len();

/// Returns the time as a part of a file name, to the millisecond.
#[must_use]
pub fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let thousandth = since.subsec_millis();
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{thousandth:03}")
}

/// Returns whether a part of a file name is such a time.
#[cfg(unix)]
pub(crate) fn is_stamp(text: &str) -> bool {
    text.len() == LENGTH
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 15 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Returns the year, month and day of a day number, which counts from 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    while days >= length_of(month, year) {
        days -= length_of(month, year);
        month += 1;
    }
    (year, month, days + 1)
}

fn is_leap(year: u64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn length_of(month: u64, year: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        for (milliseconds, expected) in [
            (0, "19700101-000000-000"),
            (951_782_399_999, "20000228-235959-999"),
            (951_782_400_000, "20000229-000000-000"),
            (951_868_800_000, "20000301-000000-000"),
            (1_795_302_065_123, "20261121-230105-123"),
            (4_107_542_400_000, "21000301-000000-000"),
        ] {
            let written = stamp(UNIX_EPOCH + Duration::from_millis(milliseconds));
            assert_eq!(written, expected);
            #[cfg(unix)]
            assert!(is_stamp(&written));
        }
        #[cfg(unix)]
        for other in ["", "20261121-230105-12", "20261121_230105_123", "2026112é-230105-12"] {
            assert!(!is_stamp(other), "{other}");
        }
    }
}
