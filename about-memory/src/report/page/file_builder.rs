//! Builds the trees of one file from its reports: all of them, and those that match a filter.

use super::Page;
use crate::report::filter::Filter;
use crate::report::notes;
use crate::report::report_tree::{File, Refusal, ReportTree};
use crate::report::tree::Settings;
use memreport::snapshot::read::{Entry, Header, Sink};
use std::error::Error;

/// A report that has been read, with notes about its collection.
#[derive(Debug)]
pub struct Opened {
    /// The trees.
    pub file: File,
    /// Notes about the collection, for people.
    pub notes: Vec<String>,
    /// True if the collection missed a reporter.
    pub is_incomplete: bool,
}

/// Returns the name of the process that wrote a file. Its reports do not contain it.
pub(crate) fn writer_name(header: &Header) -> Option<String> {
    header.own.process.as_ref().map(|process| match process.pid {
        Some(pid) => format!("{} (pid {pid})", process.name),
        None => process.name.clone(),
    })
}

/// A collector of the reports of a file, and of those that match a filter.
///
/// Firefox shows a file before the user can filter it, so it refuses the same files with a filter.
#[derive(Debug)]
pub(crate) struct FileBuilder {
    all: ReportTree,
    filtered: Option<ReportTree>,
}

impl Sink for FileBuilder {
    fn restart(&mut self) {
        self.all.clear();
        if let Some(filtered) = &mut self.filtered {
            filtered.clear();
        }
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.all.add(entry)?;
        if let Some(filtered) = &mut self.filtered {
            filtered.add(entry)?;
        }
        Ok(())
    }
}

impl FileBuilder {
    pub(crate) fn new(filter: Filter) -> Self {
        FileBuilder {
            all: ReportTree::default(),
            filtered: (!filter.is_all()).then(|| ReportTree::new(filter)),
        }
    }

    /// Computes all totals, and adds the notes of the file's header.
    ///
    /// # Errors
    /// The trees contradict themselves.
    pub(crate) fn open(mut self, header: &Header, settings: &Settings) -> Result<Opened, Refusal> {
        for tree in [Some(&mut self.all), self.filtered.as_mut()].into_iter().flatten() {
            tree.mark_reporters(&header.own.reporters);
        }
        let writer = writer_name(header);
        let file = self.finish(writer.as_deref(), header.usable_size.is_truthy(), settings)?;
        let is_incomplete = !header.own.missed.is_empty();
        Ok(Opened { file, notes: notes::of(&header.own), is_incomplete })
    }

    /// Computes all totals.
    ///
    /// # Errors
    /// The trees contradict themselves.
    pub(crate) fn finish(
        self,
        writer: Option<&str>,
        knows_usable_size: bool,
        settings: &Settings,
    ) -> Result<File, Refusal> {
        let prepare = |mut report_tree: ReportTree, is_filtered, invalid_before| {
            if let Some(name) = writer {
                report_tree.name_writer(name);
            }
            report_tree.total()?;
            Ok(File { report_tree, knows_usable_size, is_filtered, invalid_before })
        };
        let whole = prepare(self.all, false, Vec::new())?;
        let Some(filtered) = self.filtered else { return Ok(whole) };
        let whole = [whole];
        let unlisted = Page::new(&whole, settings).processes(|_| Ok::<(), Refusal>(()))?;
        prepare(filtered, true, unlisted)
    }
}
