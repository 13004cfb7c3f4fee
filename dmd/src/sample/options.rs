//! What the tracker is asked to do, by `$DMD` or by the program. The words are Mozilla's.

use std::fmt;
use std::num::NonZeroU64;

use super::unwinder::Unwinder;

/// What the tracker is asked to do. The default is that of Mozilla's DMD, but with the stack of every block.
///
/// ```
/// use dmd::{Mode, Options, Stacks};
///
/// let options = Options::default().mode(Mode::Live).stacks(Stacks::Partial);
/// assert_eq!("--mode=live --stacks=partial".parse(), Ok(options));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) mode: Mode,
    pub(crate) stacks: Stacks,
    pub(crate) sample_bytes: NonZeroU64,
    pub(crate) show_dump_stats: bool,
    /// Blocks get the time at which they are made.
    pub(crate) times: bool,
    /// How stacks are to be walked; else the best way is found out.
    pub(crate) unwinder: Option<Unwinder>,
}

/// What is kept of the program's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Live blocks and where they were allocated.
    Live,
    /// And by whom they are reported.
    DarkMatter,
    /// Live blocks, and how many like them were freed.
    Cumulative,
    /// Live blocks one by one, with their addresses and contents.
    Scan,
    /// A sample of the live blocks, with stacks and reports: for production. Big blocks are likelier to be in it, and each
    /// stands for as many like it as its size tells, so that sums over stacks are unbiased estimates.
    Profile,
}

impl Mode {
    pub(crate) const ALL: [Mode; 5] =
        [Mode::Live, Mode::DarkMatter, Mode::Cumulative, Mode::Scan, Mode::Profile];

    /// The word in `$DMD`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Live => "live",
            Mode::DarkMatter => "dark-matter",
            Mode::Cumulative => "cumulative",
            Mode::Scan => "scan",
            Mode::Profile => "profile",
        }
    }

    /// What a dump calls it: a profile is the dark matter of a sample.
    pub(crate) fn name_in_dumps(self) -> &'static str {
        if self == Mode::Profile { Mode::DarkMatter.name() } else { self.name() }
    }

    /// Whether dumps say by whom blocks are reported.
    pub(crate) fn has_reports(self) -> bool {
        matches!(self, Mode::DarkMatter | Mode::Profile)
    }
}

/// Which blocks get a stack. All others are known by size, thread and reporter alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stacks {
    /// All.
    Full,
    /// Those of which a byte wins a draw; each byte wins with a probability of 0.003, so that big blocks hardly ever lose.
    Partial,
    /// None.
    None,
}

impl Stacks {
    const ALL: [Stacks; 3] = [Stacks::Full, Stacks::Partial, Stacks::None];

    /// The word in `$DMD`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stacks::Full => "full",
            Stacks::Partial => "partial",
            Stacks::None => "none",
        }
    }
}

/// The bytes between two samples of [`Mode::Profile`], on average, unless another number is asked for.
pub const DEFAULT_SAMPLE_BYTES: NonZeroU64 = NonZeroU64::new(512 * 1024).unwrap();

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::DarkMatter,
            stacks: Stacks::Full,
            sample_bytes: DEFAULT_SAMPLE_BYTES,
            show_dump_stats: false,
            times: false,
            unwinder: None,
        }
    }
}

impl Options {
    /// Chooses what is kept. [`Mode::Scan`] keeps all stacks, whatever else is said.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Chooses which blocks get a stack.
    #[must_use]
    pub fn stacks(mut self, stacks: Stacks) -> Self {
        self.stacks = stacks;
        self
    }

    /// Under [`Mode::Profile`], has one byte in so many hit, on average: a block that is hit is in the sample.
    #[must_use]
    pub fn sample_bytes(mut self, bytes: NonZeroU64) -> Self {
        self.sample_bytes = bytes;
        self
    }

    /// Keeps when each block was made, so that dumps say how old blocks are. A block then takes 24 bytes more of the tables.
    #[must_use]
    pub fn times(mut self, times: bool) -> Self {
        self.times = times;
        self
    }

    /// Which blocks get a stack, all said.
    pub(crate) fn which_stacks(self) -> Stacks {
        if self.mode == Mode::Scan { Stacks::Full } else { self.stacks }
    }

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
                "--mode" => options.mode = one_of(Mode::ALL, Mode::name, value).ok_or(bad)?,
                "--stacks" => {
                    options.stacks = one_of(Stacks::ALL, Stacks::name, value).ok_or(bad)?;
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
                        Some(one_of(Unwinder::ALL, Unwinder::word, value).ok_or(bad)?);
                }
                _ => return Err(bad),
            }
        }
        match sample {
            // Elsewhere nothing is sampled: whoever says so expects what does not happen.
            Some(bad) if options.mode != Mode::Profile => Err(bad),
            _ => Ok(options),
        }
    }
}

fn one_of<T: Copy, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
    word: &str,
) -> Option<T> {
    all.into_iter().find(|one| name(*one) == word)
}

/// A number of bytes: `65536`, `64K` or `1M`.
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

/// A word that nobody understands among those of `$DMD`.
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

/// A word of `$DMD` that nobody understands.
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
    fn words_are_those_of_mozilla() {
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

    #[test]
    fn a_scan_keeps_all_stacks() {
        let options = Options::default().mode(Mode::Scan).stacks(Stacks::None);
        assert_eq!(options.which_stacks(), Stacks::Full);
    }
}
