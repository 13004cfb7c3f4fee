//! Parses the values of flags.

use std::time::Duration;

/// Parses a time in seconds: `0.25`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "write it as `0.25`".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero() && *time <= Duration::from_secs(3600))
        .ok_or_else(|| "between 0 and 3600 seconds".to_owned())
}

/// Parses the time between two snapshots: `0.5` or `10s`.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.trim_end_matches('s').parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(every) if every >= Duration::from_millis(10) => Ok(every),
        _ => Err("at least 0.01 seconds".to_owned()),
    }
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
