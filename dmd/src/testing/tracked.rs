//! The tracker that all checks of this room need, and the errors if it is not there.

use memreport::__private::{Tracker, tracker};

use crate::hook::start;
use crate::sample::options::{Mode, Options};
use crate::sample::{plan, variable};

/// Gives blocks stacks from here on, for the lines of messages, unless `$DMD` decides about them.
pub fn keep_stacks() {
    let now = plan::plan();
    let is_default = variable::options().is_none() && plan::mode() == Mode::DarkMatter;
    if is_default && now.inserts_all() && !now.has_stacks() {
        // Without stacks the messages have no lines, but the checks are the same.
        let _ = start(Options::default());
    }
}

/// Returns the tracker, if it is awake.
pub(super) fn awake_tracker() -> Option<&'static dyn Tracker> {
    tracker().filter(|tracker| tracker.is_awake())
}

/// Returns the tracker, or an error message unless it tracks every block.
pub(super) fn every_block_tracked() -> Result<&'static dyn Tracker, String> {
    let tracker = awake_tracker().ok_or_else(|| NOT_TRACKED.to_owned())?;
    if tracker.tracks_every_block() { Ok(tracker) } else { Err(HAS_GAPS.to_owned()) }
}

const HAS_GAPS: &str = "the tracker does not know all blocks, so nothing can be proved: start the tests with another $DMD, \
    without --mode=profile, and do not stop tracking";

/// The message if no blocks are tracked.
pub(super) const NOT_TRACKED: &str = "nobody tracks the blocks of this program, so nothing can be proved: put `dmd::global_allocator!();` into the test \
     binary's first file (in a program that is no test, start it with `DMD=1`)";
