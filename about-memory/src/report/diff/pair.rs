//! Compares two files that have been read.

use super::{Change, Side, changes, compare, normalise};
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
    /// The notes of both files.
    pub fn notes(&self) -> Vec<String> {
        let of = |which, header: &Header| {
            notes::of(&header.own)
                .into_iter()
                .map(move |note| format!("{which} file: {note}"))
                .collect::<Vec<_>>()
        };
        [of("first", &self.first.header), of("second", &self.second.header)].concat()
    }

    /// What differs, as trees.
    ///
    /// # Errors
    /// Says what in them cannot be compared.
    pub fn compare(
        self,
        filter: Filter,
        settings: &Settings,
    ) -> Result<Opened, Box<dyn Error + Send + Sync>> {
        let notes = self.notes();
        let mut builder = FileBuilder::new(filter);
        let Compared { writer, knows_usable_size } = self.compare_into(&mut builder)?;
        let file = builder.finish(writer.as_deref(), knows_usable_size, settings)?;
        Ok(Opened { file, notes })
    }

    /// What differs, as reports of their own.
    ///
    /// # Errors
    /// Says what in them cannot be compared, or what `sink` refuses.
    pub(crate) fn compare_into(
        self,
        sink: &mut dyn Sink,
    ) -> Result<Compared, Box<dyn Error + Send + Sync>> {
        let Pair { first, second } = self;
        let same = writer_name(&first.header).filter(|name| {
            writer_name(&second.header)
                .is_none_or(|other| normalise::process(name) == normalise::process(&other))
        });
        let writer = same.map(|name| normalise::process(&name).into_owned());
        compare((first.reports, &first.header), (second.reports, &second.header), sink)?;
        Ok(Compared { writer, knows_usable_size: first.header.usable_size.is_truthy() })
    }

    /// What differs, path by path.
    ///
    /// # Errors
    /// Says what in them cannot be compared.
    pub fn changes(&self, filter: &Filter) -> Result<Vec<Change>, Box<dyn Error + Send + Sync>> {
        changes(&self.first.reports, &self.second.reports, filter)
    }
}

/// What two files have in common, beside their reports.
#[derive(Debug)]
pub(crate) struct Compared {
    /// How the process that wrote them is called, without its number.
    pub(crate) writer: Option<String>,
    /// Firefox's `hasMozMallocUsableSize`.
    pub(crate) knows_usable_size: bool,
}
