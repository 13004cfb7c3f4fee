//! Answers the requests that passed the gate.

use super::store::{SnapshotStore, StoredSnapshot};
use crate::command::view::page::findings::{self, PIECES, Piece};
use crate::command::view::page::recording::PageRecording;
use crate::command::view::page::snapshot::{Dump, PageSnapshot, difference};
use crate::command::view::page::source::{Measured, Source};
use crate::error::Failure;
use crate::render::page::document::{self, Document};
use hyper::{Method, StatusCode};
use memreport::snapshot::read::Options;
use serde_json::{Value, json};
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// An answer, before it becomes an HTTP response.
#[derive(Debug)]
pub(super) enum Answer {
    /// The page.
    Page(Vec<u8>),
    /// JSON, gzipped.
    Json(Vec<u8>),
    /// A file to save, with its name.
    File(Vec<u8>, String),
    /// An error message.
    Fault(StatusCode, String),
}

/// The data of the page: snapshots and programs.
#[derive(Debug, Default)]
pub(super) struct Library {
    store: Mutex<SnapshotStore>,
    sources: Vec<Box<dyn Source>>,
    recordings: Vec<PageRecording>,
}

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Page,
    Snapshots,
    Reports(u64),
    Piece(u64, &'static str),
    Recording(usize),
    File(u64),
    Dump(u64),
    Difference(u64, u64),
    Measure(usize),
    MeasureBriefly(usize),
    MeasureAnonymized(usize),
    Minimize(usize),
    Track(usize),
    Untrack(usize),
}

/// Returns the route of a request line. Paths never name files.
fn route(method: &Method, path: &str) -> Option<Route> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let is_reading = matches!(*method, Method::GET | Method::HEAD);
    Some(match (is_reading, &segments[..]) {
        (true, [""]) => Route::Page,
        (true, ["moments"]) => Route::Snapshots,
        (true, ["moments", id, "reports"]) => Route::Reports(id.parse().ok()?),
        (true, ["moments", id, "file"]) => Route::File(id.parse().ok()?),
        (true, ["moments", id, "dump"]) => Route::Dump(id.parse().ok()?),
        (true, ["moments", id, piece]) => {
            Route::Piece(id.parse().ok()?, PIECES.into_iter().find(|known| known == piece)?)
        }
        (true, ["recordings", id]) => Route::Recording(id.parse().ok()?),
        (true, ["differences", first, second]) => {
            Route::Difference(first.parse().ok()?, second.parse().ok()?)
        }
        (false, ["measure", source]) => Route::Measure(source.parse().ok()?),
        (false, ["measure-briefly", source]) => Route::MeasureBriefly(source.parse().ok()?),
        (false, ["measure-anonymized", source]) => Route::MeasureAnonymized(source.parse().ok()?),
        (false, ["minimize", source]) => Route::Minimize(source.parse().ok()?),
        (false, ["track", source]) => Route::Track(source.parse().ok()?),
        (false, ["untrack", source]) => Route::Untrack(source.parse().ok()?),
        _ => return None,
    })
}

impl Library {
    pub(super) fn add(&mut self, snapshot: PageSnapshot) {
        self.store().add(snapshot, None);
    }

    pub(super) fn add_recording(&mut self, recording: PageRecording) {
        self.recordings.push(recording);
    }

    pub(super) fn add_source(&mut self, source: Box<dyn Source>) {
        self.sources.push(source);
    }

    pub(super) fn has_no_source(&self) -> bool {
        self.sources.is_empty()
    }

    pub(super) fn measure_all(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (id, source) in self.sources.iter().enumerate() {
            for taken in [self.remember(id), self.measure(id, true).map(drop)] {
                if let Err(error) = taken {
                    faults.push(format!("{}: {}", source.name(), error.with_causes()));
                }
            }
        }
        faults
    }

    /// Answers a request. This can take as long as a program takes to measure itself.
    pub(super) fn answer(&self, method: &Method, path: &str) -> Answer {
        let Some(route) = route(method, path) else {
            return Answer::Fault(StatusCode::NOT_FOUND, "There is no such page here.".into());
        };
        self.grant(route).unwrap_or_else(|error| {
            Answer::Fault(StatusCode::UNPROCESSABLE_ENTITY, error.with_causes())
        })
    }

    fn grant(&self, route: Route) -> Result<Answer, Failure> {
        Ok(match route {
            Route::Page => {
                let mut page = Vec::new();
                Document::served().write(&mut page)?;
                Answer::Page(page)
            }
            Route::Snapshots => self.json(&self.snapshots())?,
            Route::Reports(id) => {
                Answer::Json(document::gzip(&self.stored(id)?.snapshot.reports()?)?)
            }
            Route::Piece(id, name) => self.piece(&*self.stored(id)?, name)?,
            Route::Recording(id) => {
                let recording =
                    self.recordings.get(id).ok_or("There is no such recording here.")?;
                Answer::Json(document::gzip(&recording.json)?)
            }
            Route::File(id) => Self::file(&*self.stored(id)?)?,
            Route::Dump(id) => Self::dump(&*self.stored(id)?)?,
            Route::Difference(first, second) => {
                let (first, second) = (self.stored(first)?, self.stored(second)?);
                let json = difference(&first.snapshot, &second.snapshot)?;
                Answer::Json(document::gzip(&json)?)
            }
            Route::Measure(source) => {
                self.json(&json!({ "moment": self.measure(source, true)? }))?
            }
            Route::MeasureBriefly(source) => {
                self.json(&json!({ "moment": self.measure(source, false)? }))?
            }
            Route::MeasureAnonymized(source) => {
                let measured = self.source(source)?.measure_anonymized()?;
                self.json(&json!({ "moment": self.keep(source, measured)? }))?
            }
            Route::Minimize(source) => {
                self.source(source)?.minimize()?;
                self.json(&json!({ "moment": self.measure(source, true)? }))?
            }
            Route::Track(source) => {
                self.source(source)?.track(true)?;
                self.json(&json!({ "moment": self.measure(source, true)? }))?
            }
            Route::Untrack(source) => {
                self.source(source)?.track(false)?;
                self.json(&json!({ "moment": self.measure(source, false)? }))?
            }
        })
    }

    fn json(&self, value: &Value) -> Result<Answer, Failure> {
        Ok(Answer::Json(document::gzip(value.to_string().as_bytes())?))
    }

    fn snapshots(&self) -> Value {
        let summary = |stored: &StoredSnapshot| {
            let mut summary = stored.snapshot.summary();
            summary["id"] = stored.id.into();
            summary["source"] = stored.source.into();
            summary
        };
        let snapshots: Vec<Value> = self.store().iter().map(summary).collect();
        let sources: Vec<Value> = self
            .sources
            .iter()
            .enumerate()
            .map(|(id, source)| json!({ "id": id, "name": source.name() }))
            .collect();
        let recordings: Vec<Value> = self.recordings.iter().map(PageRecording::summary).collect();
        json!({ "moments": snapshots, "sources": sources, "recordings": recordings })
    }

    /// Stores the snapshots that a program saved itself.
    fn remember(&self, id: usize) -> Result<(), Failure> {
        let source = self.source(id)?;
        for report in source.history()? {
            let snapshot = snapshot_of(source, report)?;
            self.store().add(snapshot, Some(id));
        }
        Ok(())
    }

    /// Measures a program, and stores the snapshot.
    fn measure(&self, id: usize, with_dump: bool) -> Result<u64, Failure> {
        let measured = self.source(id)?.measure(with_dump)?;
        self.keep(id, measured)
    }

    fn keep(&self, id: usize, Measured { report, dump }: Measured) -> Result<u64, Failure> {
        let snapshot = snapshot_of(self.source(id)?, report)?;
        Ok(self.store().add(snapshot.taken(SystemTime::now(), dump), Some(id)))
    }

    fn piece(&self, stored: &StoredSnapshot, name: &str) -> Result<Answer, Failure> {
        let found = stored.findings.get_or_init(|| {
            let same_source = self.store().same_source(stored);
            let snapshots: Vec<&PageSnapshot> =
                same_source.iter().map(|other| &other.snapshot).collect();
            let index = same_source.iter().position(|other| other.id == stored.id)?;
            let found = findings::find(&snapshots, index)?;
            let zipped = |piece: &Piece| Some((piece.name, document::gzip(&piece.json).ok()?));
            found.pieces.iter().map(zipped).collect()
        });
        let missing = "no dump of DMD lies beside this report, nor does it say what is resident";
        let pieces = found.as_ref().ok_or(missing)?;
        let piece = pieces.get(name).ok_or("this dump has no such part")?;
        Ok(Answer::Json(piece.clone()))
    }

    fn file(stored: &StoredSnapshot) -> Result<Answer, Failure> {
        let bytes = zipped(&stored.snapshot.report)?;
        Ok(Answer::File(bytes, format!("memory-report-{}.json.gz", stored.id)))
    }

    fn dump(stored: &StoredSnapshot) -> Result<Answer, Failure> {
        let bytes = match &stored.snapshot.dump {
            Some(Dump::Bytes(bytes)) => zipped(bytes)?,
            Some(Dump::File(path)) => zipped(&fs::read(path)?)?,
            None => return Err("no dump of DMD lies beside this report".into()),
        };
        Ok(Answer::File(bytes, format!("memory-report-{}.dmd.json.gz", stored.id)))
    }

    fn stored(&self, id: u64) -> Result<Arc<StoredSnapshot>, Failure> {
        self.store().get(id).ok_or_else(|| "This moment is not kept: reload the page.".into())
    }

    fn source(&self, id: usize) -> Result<&dyn Source, Failure> {
        let source = self.sources.get(id).map(AsRef::as_ref);
        source.ok_or_else(|| "There is no such program here: reload the page.".into())
    }

    /// Locks the store. After a panic elsewhere the store is still consistent: one call adds one
    /// snapshot.
    fn store(&self) -> MutexGuard<'_, SnapshotStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the bytes of a file, gzipped unless they are already.
fn zipped(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip { bytes.to_vec() } else { document::gzip(bytes)? })
}

/// Makes a snapshot of a program's report.
fn snapshot_of(source: &dyn Source, report: Vec<u8>) -> Result<PageSnapshot, Failure> {
    let options = Options { utf8: true, ..Options::default() };
    Ok(PageSnapshot::of_bytes(source.name(), report, options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_paths_are_anything() {
        for (method, path, wanted) in [
            ("GET", "/", Some(Route::Page)),
            ("HEAD", "/", Some(Route::Page)),
            ("GET", "/moments", Some(Route::Snapshots)),
            ("GET", "/moments/7/reports", Some(Route::Reports(7))),
            ("GET", "/differences/1/2", Some(Route::Difference(1, 2))),
            ("POST", "/measure/0", Some(Route::Measure(0))),
            ("POST", "/measure-briefly/0", Some(Route::MeasureBriefly(0))),
            ("POST", "/minimize/0", Some(Route::Minimize(0))),
            ("POST", "/measure-anonymized/0", Some(Route::MeasureAnonymized(0))),
            ("GET", "/measure-anonymized/0", None),
            ("POST", "/track/0", Some(Route::Track(0))),
            ("POST", "/untrack/0", Some(Route::Untrack(0))),
            ("GET", "/track/0", None),
            ("GET", "/untrack/0", None),
            ("GET", "/moments/7/heap", Some(Route::Piece(7, "heap"))),
            ("GET", "/moments/7/dump", Some(Route::Dump(7))),
            ("GET", "/moments/7/passwd", None),
            ("GET", "/recordings/0", Some(Route::Recording(0))),
            ("GET", "/recordings/../0", None),
            ("GET", "/measure/0", None),
            ("GET", "/minimize/0", None),
            ("POST", "/", None),
            ("POST", "/moments", None),
            ("GET", "/moments/../../etc/passwd", None),
            ("GET", "/..%2f..%2fetc/passwd", None),
            ("GET", "//etc/passwd", None),
            ("GET", "/moments/-1/reports", None),
            ("GET", "/moments/99999999999999999999/reports", None),
            ("GET", "/moments/7/reports/", None),
            ("GET", "*", None),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(route(&method, path), wanted, "{method} {path}");
        }
    }
}
