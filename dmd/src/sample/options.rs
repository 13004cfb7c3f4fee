//! What the tracker is asked to do, by `$DMD` or by the program. The words are Mozilla's.

mod parse;

use std::num::NonZeroU64;

pub(crate) use self::parse::BadWord;
pub use self::parse::OptionsError;
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
