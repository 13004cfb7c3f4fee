//! Compares two files that have been read.

use super::changes::changes;
use super::{Change, Side, compare, normalise};
use crate::report::filter::Filter;
use crate::report::notes;
use crate::report::page::file_builder::{FileBuilder, Opened, writer_name};
use crate::report::tree::Settings;
use memreport::snapshot::read::{Header, Sink};
use std::error::Error;

/// Two files that have been read and not yet compared.
#[derive(Debug)]
pub struct Pair {
    pub(crate) first: ReadSide,
    pub(crate) second: ReadSide,
}

/// One of two files: its reports and its header.
#[derive(Debug)]
pub(crate) struct ReadSide {
    pub(crate) reports: Side,
    pub(crate) header: Header,
}

impl Pair {
    /// Returns the notes of both files.
    pub fn notes(&self) -> Vec<String> {
        let of = |which, header: &Header| {
            notes::of(&header.own)
                .into_iter()
                .map(move |note| format!("{which} file: {note}"))
                .collect::<Vec<_>>()
        };
        [of("first", &self.first.header), of("second", &self.second.header)].concat()
    }

    /// Returns whether a collection of one of the files missed a reporter.
    pub fn is_incomplete(&self) -> bool {
        [&self.first, &self.second].iter().any(|side| !side.header.own.missed.is_empty())
    }

    /// Computes the differences as trees.
    ///
    /// # Errors
    /// The files cannot be compared.
    pub fn compare(
        self,
        filter: Filter,
        settings: &Settings,
    ) -> Result<Opened, Box<dyn Error + Send + Sync>> {
        let notes = self.notes();
        let is_incomplete = self.is_incomplete();
        let mut builder = FileBuilder::new(filter);
        let Compared { writer, knows_usable_size } = self.compare_into(&mut builder)?;
        let file = builder.finish(writer.as_deref(), knows_usable_size, settings)?;
        Ok(Opened { file, notes, is_incomplete })
    }

    /// Computes the differences as reports.
    ///
    /// # Errors
    /// The files cannot be compared, or `sink` refuses a report.
    pub(crate) fn compare_into(
        self,
        sink: &mut dyn Sink,
    ) -> Result<Compared, Box<dyn Error + Send + Sync>> {
        let writer = self.writer();
        let Pair { first, second } = self;
        compare((first.reports, &first.header), (second.reports, &second.header), sink)?;
        Ok(Compared { writer, knows_usable_size: first.header.usable_size.is_truthy() })
    }

    /// Computes the differences by path, the largest first.
    ///
    /// # Errors
    /// The files cannot be compared.
    pub fn changes(self, filter: &Filter) -> Result<Vec<Change>, Box<dyn Error + Send + Sync>> {
        let writer = self.writer().unwrap_or_else(|| "Main Process".to_owned());
        let Pair { first, second } = self;
        let (first, second) = ((first.reports, &first.header), (second.reports, &second.header));
        let mut changes = changes(first, second, filter)?;
        for change in changes.iter_mut().filter(|change| change.process.is_empty()) {
            change.process.clone_from(&writer);
        }
        Ok(changes)
    }

    /// Returns the name of the process that wrote both files, without its number.
    fn writer(&self) -> Option<String> {
        let same = writer_name(&self.first.header).filter(|name| {
            writer_name(&self.second.header)
                .is_none_or(|other| normalise::process(name) == normalise::process(&other))
        });
        same.map(|name| normalise::process(&name).into_owned())
    }
}

/// The header of a comparison.
#[derive(Debug)]
pub(crate) struct Compared {
    /// The name of the process that wrote both files, without its number.
    pub(crate) writer: Option<String>,
    /// Firefox's `hasMozMallocUsableSize`.
    pub(crate) knows_usable_size: bool,
}
