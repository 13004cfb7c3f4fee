//! The options of the tracker, set by `$DMD` or by the program.

mod parse;

use std::num::NonZeroU64;

pub(crate) use self::parse::BadWord;
pub use self::parse::OptionsError;
use super::unwinder::Unwinder;

/// The options of the tracker. The default is DMD's in Firefox, but with a stack for every block.
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
    /// True if blocks keep the time of their allocation.
    pub(crate) times: bool,
    /// The unwinder; if `None`, the fastest that works for this program.
    pub(crate) unwinder: Option<Unwinder>,
    /// True if events of freed blocks have the stack of the free. Recordings set it.
    pub(crate) free_stacks: bool,
}

/// The blocks that the tracker records, and what it records of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Live blocks with the stacks of their allocations.
    Live,
    /// Live blocks with their stacks and their reporters.
    DarkMatter,
    /// Live blocks, and counts of freed blocks like them.
    Cumulative,
    /// Live blocks one by one, with addresses and contents.
    Scan,
    /// A sample of the live blocks, with stacks and reporters: for production. A block is sampled
    /// with a probability that grows with its size, and weighted accordingly. Weighted sums are
    /// unbiased.
    Profile,
}

impl Mode {
    pub(crate) const ALL: [Mode; 5] =
        [Mode::Live, Mode::DarkMatter, Mode::Cumulative, Mode::Scan, Mode::Profile];

    /// Returns the mode's word in `$DMD`.
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

    /// Returns the mode's name in dumps: a profile is the dark matter of a sample.
    pub(crate) fn name_in_dumps(self) -> &'static str {
        if self == Mode::Profile { Mode::DarkMatter.name() } else { self.name() }
    }

    /// Returns whether dumps contain the reporters of blocks.
    pub(crate) fn has_reports(self) -> bool {
        matches!(self, Mode::DarkMatter | Mode::Profile)
    }
}

/// The blocks that get a stack. All others have only a size, a thread and a reporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stacks {
    /// All blocks.
    Full,
    /// A sample of the blocks: each byte is a trial with probability 0.003, so nearly all big
    /// blocks get a stack.
    Partial,
    /// No block.
    None,
}

impl Stacks {
    const ALL: [Stacks; 3] = [Stacks::Full, Stacks::Partial, Stacks::None];

    /// Returns the word in `$DMD`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stacks::Full => "full",
            Stacks::Partial => "partial",
            Stacks::None => "none",
        }
    }
}

/// The default of [`Options::sample_bytes`].
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
            free_stacks: false,
        }
    }
}

impl Options {
    /// Sets the mode. [`Mode::Scan`] keeps all stacks, whatever [`stacks`](Self::stacks) requests.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets which blocks get a stack.
    #[must_use]
    pub fn stacks(mut self, stacks: Stacks) -> Self {
        self.stacks = stacks;
        self
    }

    /// Sets the mean distance between samples of [`Mode::Profile`], in bytes.
    #[must_use]
    pub fn sample_bytes(mut self, bytes: NonZeroU64) -> Self {
        self.sample_bytes = bytes;
        self
    }

    /// Sets whether blocks keep the time of their allocation, so that dumps contain ages. Each
    /// block then takes 24 more bytes of the tables.
    #[must_use]
    pub fn times(mut self, times: bool) -> Self {
        self.times = times;
        self
    }

    /// Returns which blocks get a stack, given the mode.
    pub(crate) fn effective_stacks(self) -> Stacks {
        if self.mode == Mode::Scan { Stacks::Full } else { self.stacks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_keeps_all_stacks() {
        let options = Options::default().mode(Mode::Scan).stacks(Stacks::None);
        assert_eq!(options.effective_stacks(), Stacks::Full);
    }
}
