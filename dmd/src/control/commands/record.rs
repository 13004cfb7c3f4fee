//! The socket command `record`: a recording for each client, into a file that it names.
//!
//! The program writes the file itself, so that a client that is slow or stopped delays nobody.

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use memreport::__private::as_own;
use memreport::serve::{Answer, Part, Request};
use serde_json::json;

use super::leases::Leases;
use crate::control::record::{Recorder, Recording};
use crate::control::sudden_exit;
use crate::mem::signals::at_exit;
use crate::sample::plan;

memreport::command!(
    "record",
    "Records allocations over time: do=begin with path= (and options=, lossy=yes or free-stacks=yes), do=stay and do=end with number=.",
    |request| as_own(|| record(request))
);

/// The recordings. A snapshot for another client may delay a request for seconds.
static RECORDINGS: Leases<Recording> = Leases::new(Duration::from_secs(30), "dmd-record-lease");

static AT_EXIT: Once = Once::new();

fn record(request: &Request) -> Answer {
    match request.get("do") {
        Some("begin") => begin(request),
        Some("stay") => RECORDINGS.renew(request, |_| Vec::new()),
        Some("end") => {
            let recorded = RECORDINGS.end(request)?.finish().map_err(|error| error.to_string())?;
            Ok(answer(&json!({ "events": recorded.events, "lost": recorded.lost })))
        }
        _ => Err("say do=begin, do=stay or do=end".to_owned()),
    }
}

/// Starts a recording for a new client. Without options, those of tracking stay in force; if it is
/// off, a sample is recorded.
fn begin(request: &Request) -> Answer {
    let path = request.get("path").map(Path::new).filter(|path| path.is_absolute());
    let path = path.ok_or("say path= with an absolute path")?;
    let mut recorder = Recorder::default();
    if let Some(words) = request.get("options") {
        recorder = recorder.options(words.parse().map_err(|error| format!("{error}"))?);
    } else if let Some(options) = plan::options() {
        recorder = recorder.options(options);
    }
    let recorder = recorder.lossy(request.is_yes("lossy"));
    let recorder = recorder.free_stacks(request.is_yes("free-stacks"));
    let recording = recorder.start(path).map_err(|error| error.to_string())?;
    AT_EXIT.call_once(|| {
        at_exit(end_all);
        sudden_exit::start();
    });
    let number = RECORDINGS.hold(recording)?;
    let lease = u64::try_from(RECORDINGS.length().as_millis()).unwrap_or(u64::MAX);
    Ok(answer(&json!({ "number": number, "leaseMs": lease })))
}

/// Ends all recordings when the program exits, so that their files are whole.
extern "C" fn end_all() {
    drop(RECORDINGS.end_all());
}

fn answer(value: &serde_json::Value) -> Vec<Part> {
    vec![Part { name: "record".into(), bytes: value.to_string().into_bytes() }]
}
