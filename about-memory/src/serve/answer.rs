//! What is answered to a request that has been let in.

use super::shelf::{Kept, Shelf};
use super::source::{Measured, Source};
use crate::html::document::{self, Document};
use crate::html::findings;
use crate::html::moment::{self, Moment};
use crate::show::{Failure, told};
use hyper::{Method, StatusCode};
use memreport::snapshot::read::Options;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// An answer, before it becomes one of HTTP.
#[derive(Debug)]
pub(super) enum Answer {
    /// The page.
    Page(Vec<u8>),
    /// JSON, gzipped.
    Json(Vec<u8>),
    /// A file to save, with its name.
    File(Vec<u8>, String),
    /// A sentence that says what is wrong.
    Fault(StatusCode, String),
}

/// All that a page may ask for.
#[derive(Debug, Default)]
pub(super) struct Library {
    shelf: Mutex<Shelf>,
    sources: Vec<Box<dyn Source>>,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Page,
    Moments,
    Reports(u64),
    Findings(u64),
    File(u64),
    Difference(u64, u64),
    Measure(usize),
    MeasureBriefly(usize),
    Minimize(usize),
}

/// The wish of a request line; a path is never one of the file system.
fn wish(method: &Method, path: &str) -> Option<Wish> {
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let is_reading = matches!(*method, Method::GET | Method::HEAD);
    Some(match (is_reading, &segments[..]) {
        (true, [""]) => Wish::Page,
        (true, ["moments"]) => Wish::Moments,
        (true, ["moments", id, "reports"]) => Wish::Reports(id.parse().ok()?),
        (true, ["moments", id, "findings"]) => Wish::Findings(id.parse().ok()?),
        (true, ["moments", id, "file"]) => Wish::File(id.parse().ok()?),
        (true, ["differences", first, second]) => {
            Wish::Difference(first.parse().ok()?, second.parse().ok()?)
        }
        (false, ["measure", source]) => Wish::Measure(source.parse().ok()?),
        (false, ["measure-briefly", source]) => Wish::MeasureBriefly(source.parse().ok()?),
        (false, ["minimize", source]) => Wish::Minimize(source.parse().ok()?),
        _ => return None,
    })
}

impl Library {
    pub(super) fn add(&mut self, moment: Moment) {
        self.shelf().add(moment, None);
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
                    faults.push(format!("{}: {}", source.name(), told(&*error)));
                }
            }
        }
        faults
    }

    /// Answers; this may take as long as a program takes to measure itself.
    pub(super) fn answer(&self, method: &Method, path: &str) -> Answer {
        let Some(wish) = wish(method, path) else {
            return Answer::Fault(StatusCode::NOT_FOUND, "There is no such page here.".into());
        };
        self.grant(wish)
            .unwrap_or_else(|error| Answer::Fault(StatusCode::UNPROCESSABLE_ENTITY, told(&*error)))
    }

    fn grant(&self, wish: Wish) -> Result<Answer, Failure> {
        Ok(match wish {
            Wish::Page => {
                let mut page = Vec::new();
                Document::served().write(&mut page)?;
                Answer::Page(page)
            }
            Wish::Moments => self.json(&self.moments())?,
            Wish::Reports(id) => Answer::Json(document::gzip(&self.kept(id)?.moment.reports()?)?),
            Wish::Findings(id) => self.findings(&*self.kept(id)?)?,
            Wish::File(id) => self.file(&*self.kept(id)?)?,
            Wish::Difference(first, second) => {
                let (first, second) = (self.kept(first)?, self.kept(second)?);
                let json = moment::difference(&first.moment, &second.moment)?;
                Answer::Json(document::gzip(&json)?)
            }
            Wish::Measure(source) => {
                self.json(&json!({ "moment": self.measure(source, true)? }))?
            }
            Wish::MeasureBriefly(source) => {
                self.json(&json!({ "moment": self.measure(source, false)? }))?
            }
            Wish::Minimize(source) => {
                self.source(source)?.minimize()?;
                self.json(&json!({ "moment": self.measure(source, true)? }))?
            }
        })
    }

    fn json(&self, value: &Value) -> Result<Answer, Failure> {
        Ok(Answer::Json(document::gzip(value.to_string().as_bytes())?))
    }

    fn moments(&self) -> Value {
        let summary = |kept: &Kept| {
            let mut summary = kept.moment.summary();
            summary["id"] = kept.id.into();
            summary["source"] = kept.source.into();
            summary
        };
        let moments: Vec<Value> = self.shelf().iter().map(summary).collect();
        let sources: Vec<Value> = self
            .sources
            .iter()
            .enumerate()
            .map(|(id, source)| json!({ "id": id, "name": source.name() }))
            .collect();
        json!({ "moments": moments, "sources": sources })
    }

    /// Keeps what a program has kept of its own past.
    fn remember(&self, id: usize) -> Result<(), Failure> {
        let source = self.source(id)?;
        for report in source.history()? {
            let moment = moment_of(source, report)?;
            self.shelf().add(moment, Some(id));
        }
        Ok(())
    }

    /// Measures a program, and keeps what it says.
    fn measure(&self, id: usize, with_dump: bool) -> Result<u64, Failure> {
        let source = self.source(id)?;
        let Measured { report, dump } = source.measure(with_dump)?;
        let moment = moment_of(source, report)?;
        Ok(self.shelf().add(moment.taken(SystemTime::now(), dump), Some(id)))
    }

    fn findings(&self, kept: &Kept) -> Result<Answer, Failure> {
        let found = kept.findings.get_or_init(|| {
            let course = self.shelf().course(kept);
            let moments: Vec<&Moment> = course.iter().map(|other| &other.moment).collect();
            let index = course.iter().position(|other| other.id == kept.id)?;
            findings::find(&moments, index).and_then(|found| document::gzip(&found.json).ok())
        });
        let missing = "no dump of DMD lies beside this report, nor does it say what is resident";
        Ok(Answer::Json(found.clone().ok_or(missing)?))
    }

    fn file(&self, kept: &Kept) -> Result<Answer, Failure> {
        let report = &kept.moment.report;
        let is_gzip = report.starts_with(&[0x1f, 0x8b]);
        let bytes = if is_gzip { report.clone() } else { document::gzip(report)? };
        Ok(Answer::File(bytes, format!("memory-report-{}.json.gz", kept.id)))
    }

    fn kept(&self, id: u64) -> Result<Arc<Kept>, Failure> {
        self.shelf().get(id).ok_or_else(|| "This moment is not kept: reload the page.".into())
    }

    fn source(&self, id: usize) -> Result<&dyn Source, Failure> {
        let source = self.sources.get(id).map(AsRef::as_ref);
        source.ok_or_else(|| "There is no such program here: reload the page.".into())
    }

    /// A panic elsewhere leaves a whole list: moments are added as one.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a program has said of a moment.
fn moment_of(source: &dyn Source, report: Vec<u8>) -> Result<Moment, Failure> {
    let options = Options { utf8: true, ..Options::default() };
    Ok(Moment::of_bytes(source.name(), report, options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_paths_are_anything() {
        for (method, path, wanted) in [
            ("GET", "/", Some(Wish::Page)),
            ("HEAD", "/", Some(Wish::Page)),
            ("GET", "/moments", Some(Wish::Moments)),
            ("GET", "/moments/7/reports", Some(Wish::Reports(7))),
            ("GET", "/differences/1/2", Some(Wish::Difference(1, 2))),
            ("POST", "/measure/0", Some(Wish::Measure(0))),
            ("POST", "/measure-briefly/0", Some(Wish::MeasureBriefly(0))),
            ("POST", "/minimize/0", Some(Wish::Minimize(0))),
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
            assert_eq!(wish(&method, path), wanted, "{method} {path}");
        }
    }
}
