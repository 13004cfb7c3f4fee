//! Socket commands that start, change and stop tracking in a running program.

mod leases;
mod log;
mod record;

use memreport::serve::{Answer, Part, Request};

use crate::hook::start::{start, stop};
use crate::sample::options::Options;
use crate::sample::plan::state;

memreport::command!(
    "track",
    "Has DMD track blocks from now on, with the words of $DMD in options=: --mode=profile --sample-bytes=64K.",
    track
);

memreport::command!(
    "untrack",
    "Has DMD track no new blocks; tracked blocks stay in its table.",
    |_request| {
        stop();
        tracking_state()
    }
);

/// Starts tracking with the options of the request.
fn track(request: &Request) -> Answer {
    let options: Options =
        request.get("options").unwrap_or("1").parse().map_err(|error| format!("{error}"))?;
    start(options).map_err(|error| error.to_string())?;
    tracking_state()
}

/// Answers with the state of tracking.
fn tracking_state() -> Answer {
    Ok(vec![Part { name: "tracking".into(), bytes: state().into_bytes() }])
}
