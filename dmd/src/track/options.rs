//! `$DMD`: what the tracker is asked to do. The words are Mozilla's.

use std::fmt;

use super::walk::Unwinder;

/// The wishes in `$DMD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) mode: Mode,
    pub(crate) stacks: Stacks,
    pub(crate) show_dump_stats: bool,
    /// How stacks are to be walked; else the best way is found out.
    pub(crate) unwinder: Option<Unwinder>,
}

/// What is kept of the program's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Live blocks and where they were allocated.
    Live,
    /// And by whom they are reported.
    DarkMatter,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Live => "live",
            Mode::DarkMatter => "dark-matter",
        }
    }
}

/// Which blocks get a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stacks {
    /// All.
    Full,
    /// None: blocks are known by size and reporter alone.
    None,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::DarkMatter,
            stacks: Stacks::Full,
            show_dump_stats: false,
            unwinder: None,
        }
    }
}

impl Options {
    /// Reads the words of `$DMD`; `1` alone stands for the defaults.
    pub(crate) fn parse(text: &str) -> Result<Options, BadWord<'_>> {
        let mut options = Options::default();
        if text.trim() == "1" {
            return Ok(options);
        }
        for word in text.split_ascii_whitespace() {
            let bad = BadWord { word };
            match word.split_once('=').ok_or(bad)? {
                ("--mode", mode) => {
                    options.mode = match mode {
                        "live" => Mode::Live,
                        "dark-matter" => Mode::DarkMatter,
                        _ => return Err(bad),
                    }
                }
                ("--stacks", stacks) => {
                    options.stacks = match stacks {
                        "full" => Stacks::Full,
                        "none" => Stacks::None,
                        _ => return Err(bad),
                    }
                }
                ("--unwinder", "cfi") => options.unwinder = Some(Unwinder::Cfi),
                ("--unwinder", "frame-pointers") => {
                    options.unwinder = Some(Unwinder::FramePointers);
                }
                ("--unwinder", "backtrace") => options.unwinder = Some(Unwinder::Backtrace),
                ("--show-dump-stats", "yes") => options.show_dump_stats = true,
                ("--show-dump-stats", "no") => options.show_dump_stats = false,
                _ => return Err(bad),
            }
        }
        Ok(options)
    }
}

/// A word of `$DMD` that nobody understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadWord<'t> {
    pub(crate) word: &'t str,
}

impl fmt::Display for BadWord<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Bad entry in the $DMD environment variable: '{}'. It takes --mode=live|dark-matter, \
             --stacks=full|none, --show-dump-stats=yes|no and \
             --unwinder=cfi|frame-pointers|backtrace, separated by blanks, or 1 for the defaults.",
            self.word
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_mozilla() {
        let default = Options::default();
        let table = [
            ("", Ok(default)),
            ("1", Ok(default)),
            (" 1 ", Ok(default)),
            ("--mode=dark-matter", Ok(default)),
            (
                "--mode=live --stacks=none",
                Ok(Options { mode: Mode::Live, stacks: Stacks::None, ..default }),
            ),
            ("--show-dump-stats=yes", Ok(Options { show_dump_stats: true, ..default })),
            (
                "--unwinder=frame-pointers",
                Ok(Options { unwinder: Some(Unwinder::FramePointers), ..default }),
            ),
            ("--mode=nonsense", Err("--mode=nonsense")),
            ("--stacks", Err("--stacks")),
            ("--show-dump-stats=maybe", Err("--show-dump-stats=maybe")),
            ("1 --mode=live", Err("1")),
            ("--mode=live --max-frames=3", Err("--max-frames=3")),
        ];
        for (text, expected) in table {
            assert_eq!(Options::parse(text).map_err(|bad| bad.word), expected, "{text}");
        }
    }
}
