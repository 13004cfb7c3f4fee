//! Parses sizes with units: `64K`, `1.5MB`.

/// Parses a number of bytes: `4096`, `64K`, `1.5 MB`, `2GiB`. Units are powers of 1024.
pub(crate) fn parse_bytes(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (digits, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    let factor = match unit.trim().to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i')
    {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1_048_576.0,
        "g" => 1_073_741_824.0,
        _ => return Err(format!("unknown unit `{}`; B, KB, MB and GB are known", unit.trim())),
    };
    let number: f64 =
        digits.parse().map_err(|_| "write it as `4096`, `64K` or `1.5MB`".to_owned())?;
    Ok(number * factor)
}

/// Parses a number of bytes and rounds it to a whole number.
pub(crate) fn parse_whole_bytes(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    // A double represents every whole number up to 2^53.
    format!("{:.0}", bytes.min(9e15)).parse().map_err(|_| "too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        for (text, bytes) in [
            ("0", 0.0),
            ("4096", 4096.0),
            ("64K", 65536.0),
            ("1.5 MB", 1_572_864.0),
            ("2GiB", 2_147_483_648.0),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "x", "1T", "-1", "1.2.3", "MB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
