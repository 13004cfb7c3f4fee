//! Chooses how a program is tracked, and prepares its start.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::error::RunError;
use super::preload::{self, Preload};
use super::program::{self, Tracker};

/// Flags that choose the processes to track.
#[derive(Args, Clone, Copy, Debug)]
pub struct ProcessArgs {
    /// PROGRAM only starts a program with DMD, as a shell script or `cargo run` does: do not track
    /// PROGRAM itself unless it has DMD
    #[arg(long)]
    pub wrapper: bool,

    /// Track the child processes of PROGRAM too, if they have no DMD
    #[arg(long)]
    pub children: bool,

    /// If PROGRAM has DMD, track the blocks of C in it too: explicit/c-heap/LIBRARY/FUNCTION
    #[arg(long, conflicts_with = "wrapper")]
    pub c_heap: bool,
}

/// The way in which a program and its children are tracked.
#[derive(Debug)]
pub(crate) struct Tracking {
    /// The library, if it is preloaded.
    preload: Option<Preload>,
    /// The program or script without DMD.
    without_dmd: Option<PathBuf>,
    children: bool,
}

impl Tracking {
    /// Chooses by the program's file and the flags.
    pub(crate) fn of(program: &Path, processes: ProcessArgs) -> Result<Self, RunError> {
        let ProcessArgs { wrapper, children, c_heap } = processes;
        let tracker = if wrapper { Tracker::Own } else { program::tracker(program)? };
        let without_dmd = match tracker {
            Tracker::Own => None,
            Tracker::Preloaded => Some(program.to_owned()),
        };
        if c_heap && without_dmd.is_none() {
            program::check_preload(program)?;
        }
        let is_preloaded = c_heap || without_dmd.is_some() || (children && preload::is_available());
        let preload = if is_preloaded { Some(Preload::write()?) } else { None };
        Ok(Tracking { preload, without_dmd, children })
    }

    /// Returns whether the program itself is tracked by the preloaded library.
    pub(crate) fn is_preloaded(&self) -> bool {
        self.without_dmd.is_some()
    }

    /// Has the program load the library, if it needs that.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Some(preload) = &self.preload {
            preload.apply(command, self.children);
        }
    }

    /// Returns a note about a program that is tracked by the preloaded library.
    pub(crate) fn note(&self) -> Option<String> {
        let program = self.without_dmd.as_ref()?;
        let children = if self.children { "" } else { "; of child processes see --children" };
        Some(format!(
            "{} has no DMD: a preloaded library tracked its malloc, without reporters{children}",
            program.display()
        ))
    }

    /// Returns the likely reason if no process was seen.
    pub(crate) fn silence(&self) -> &'static str {
        if self.is_preloaded() {
            "no process was tracked: the dynamic linker did not load the library, or the program has a malloc of its own; see \
             the messages above"
        } else {
            "no process with DMD was seen: is `dmd::global_allocator!();` in the program that does the work?"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_dmd_is_tracked_by_the_library_and_said_to_be() {
        let tracking = |without_dmd, children| Tracking { preload: None, without_dmd, children };
        let own = tracking(None, false);
        assert!(!own.is_preloaded() && own.note().is_none());
        assert!(own.silence().contains("is `dmd::global_allocator!();` in the program"));
        let preloaded = tracking(Some(PathBuf::from("shop")), false);
        assert!(preloaded.is_preloaded());
        assert!(preloaded.silence().contains("did not load the library"));
        let note = preloaded.note().expect("it is tracked in another way");
        assert!(note.starts_with("shop has no DMD") && note.ends_with("see --children"), "{note}");
        let note = tracking(Some(PathBuf::from("shop")), true).note();
        assert!(!note.expect("it is tracked in another way").contains("--children"));
    }
}
