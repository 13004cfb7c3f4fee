//! The words of `$DMD`, which are Mozilla's.

use std::fmt;
use std::num::NonZeroU64;

use super::{Mode, Options, Stacks};
use crate::sample::unwinder::Unwinder;

impl Options {
    /// Reads the words of `$DMD`; `1` alone stands for the defaults.
    pub(crate) fn parse(text: &str) -> Result<Options, BadWord<'_>> {
        let mut options = Options::default();
        if text.trim() == "1" {
            return Ok(options);
        }
        let mut sample = None;
        for word in text.split_ascii_whitespace() {
            let bad = BadWord { word };
            let (name, value) = word.split_once('=').ok_or(bad)?;
            match name {
                "--mode" => options.mode = by_name(Mode::ALL, Mode::name, value).ok_or(bad)?,
                "--stacks" => {
                    options.stacks = by_name(Stacks::ALL, Stacks::name, value).ok_or(bad)?;
                }
                "--sample-bytes" => {
                    options.sample_bytes = bytes(value).ok_or(bad)?;
                    sample = Some(bad);
                }
                "--show-dump-stats" if matches!(value, "yes" | "no") => {
                    options.show_dump_stats = value == "yes";
                }
                "--times" if matches!(value, "yes" | "no") => options.times = value == "yes",
                "--unwinder" => {
                    options.unwinder =
                        Some(by_name(Unwinder::ALL, Unwinder::word, value).ok_or(bad)?);
                }
                _ => return Err(bad),
            }
        }
        match sample {
            // Only a profile samples, so the option would have no effect.
            Some(bad) if options.mode != Mode::Profile => Err(bad),
            _ => Ok(options),
        }
    }
}

fn by_name<T: Copy, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
    word: &str,
) -> Option<T> {
    all.into_iter().find(|one| name(*one) == word)
}

/// Parses a number of bytes: `65536`, `64K` or `1M`.
fn bytes(text: &str) -> Option<NonZeroU64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    NonZeroU64::new(digits.parse::<u64>().ok()?.checked_mul(unit)?)
}

impl std::str::FromStr for Options {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        Options::parse(text).map_err(|bad| OptionsError { word: bad.word.to_owned() })
    }
}

/// An unknown option of DMD, or a bad value of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionsError {
    word: String,
}

impl fmt::Display for OptionsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "'{}' is no option of DMD. {KNOWN_WORDS}", self.word)
    }
}

impl std::error::Error for OptionsError {}

/// A word of `$DMD` that is no option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadWord<'t> {
    pub(crate) word: &'t str,
}

const KNOWN_WORDS: &str = "It takes --mode=live|dark-matter|cumulative|scan|profile, --stacks=full|partial|none, \
    --sample-bytes=N (with K or M; for --mode=profile), --times=yes|no, --unwinder=cfi|frame-pointers|backtrace and --show-dump-stats=yes|no, separated by blanks, or 1 for the defaults.";

impl fmt::Display for BadWord<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Bad entry in the $DMD environment variable: '{}'. {KNOWN_WORDS}", self.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parsed_as_mozilla_does() {
        let default = Options::default();
        let sampled = |bytes| NonZeroU64::new(bytes).unwrap();
        let table = [
            ("", Ok(default)),
            ("1", Ok(default)),
            (" 1 ", Ok(default)),
            ("--mode=dark-matter", Ok(default)),
            ("--mode=live --stacks=none", Ok(default.mode(Mode::Live).stacks(Stacks::None))),
            (
                "--mode=cumulative --stacks=partial",
                Ok(default.mode(Mode::Cumulative).stacks(Stacks::Partial)),
            ),
            ("--mode=scan", Ok(default.mode(Mode::Scan))),
            ("--mode=profile", Ok(default.mode(Mode::Profile))),
            (
                "--mode=profile --sample-bytes=64K",
                Ok(default.mode(Mode::Profile).sample_bytes(sampled(65536))),
            ),
            (
                "--sample-bytes=100 --mode=profile",
                Ok(default.mode(Mode::Profile).sample_bytes(sampled(100))),
            ),
            ("--sample-bytes=100", Err("--sample-bytes=100")),
            ("--sample-bytes=100 --mode=scan", Err("--sample-bytes=100")),
            ("--times=yes --mode=live", Ok(default.mode(Mode::Live).times(true))),
            ("--times=maybe", Err("--times=maybe")),
            ("--show-dump-stats=yes", Ok(Options { show_dump_stats: true, ..default })),
            (
                "--unwinder=frame-pointers",
                Ok(Options { unwinder: Some(Unwinder::FramePointers), ..default }),
            ),
            ("--mode=nonsense", Err("--mode=nonsense")),
            ("--stacks", Err("--stacks")),
            ("--sample-bytes=0", Err("--sample-bytes=0")),
            ("--sample-bytes=+1", Err("--sample-bytes=+1")),
            ("--sample-bytes=99999999999999999999", Err("--sample-bytes=99999999999999999999")),
            ("--sample-bytes=18446744073709551615M", Err("--sample-bytes=18446744073709551615M")),
            ("--show-dump-stats=maybe", Err("--show-dump-stats=maybe")),
            ("1 --mode=live", Err("1")),
            ("--mode=live --max-frames=3", Err("--max-frames=3")),
        ];
        for (text, expected) in table {
            assert_eq!(Options::parse(text).map_err(|bad| bad.word), expected, "{text}");
        }
    }
}
