//! Faults to plant, one of each class. Each prints its effect on `heap-unclassified`.
#![expect(unsafe_code, reason = "wrong reports cannot be made by safe code: that is what is shown")]

use std::alloc::Layout;
use std::sync::OnceLock;

use clap::ValueEnum;
use memreport::{MallocSizeOf, Measured, Ops, Reports, measure};

use crate::documents::Document;
use crate::index;
use crate::settings::{DEFAULT, SETTINGS};
use crate::terms::{TermId, Terms};

/// A class of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, MallocSizeOf)]
pub(crate) enum Fault {
    /// An unreported index of similar words.
    Unreported,
    /// A second reporter that reports the paths of the documents.
    Double,
    /// A report of a text that is part of the program and no heap block.
    NonHeap,
    /// A report of the second half of the list of documents as if it were a block.
    Interior,
    /// A report of a log's length, without its spare capacity.
    Partial,
}

/// The effect of a planted fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planted {
    /// The change of `heap-unclassified`: up for missing blocks, down for bytes counted in excess.
    pub(crate) moves: i64,
    /// The number of affected blocks or claims.
    pub(crate) blocks: usize,
}

impl Planted {
    fn left_out(measured: &Measured) -> Self {
        Planted { moves: signed(measured.bytes), blocks: measured.blocks }
    }

    fn counted_wrongly(measured: &Measured) -> Self {
        Planted { moves: -signed(measured.bytes), blocks: measured.blocks }
    }

    /// Returns the effect of a claim of so many bytes that are no block's. Only a collection finds
    /// out that it is wrong.
    fn claimed(bytes: usize) -> Self {
        Planted { moves: -signed(bytes), blocks: 1 }
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Fault {
    /// Plants the fault for the rest of the run.
    pub(crate) fn plant(self) -> Planted {
        match self {
            Fault::Unreported => {
                let similar = SIMILAR.get_or_init(|| index_similar_words(index::read().terms()));
                Planted::left_out(&measure(similar))
            }
            Fault::Double => {
                memreport::register(report_paths_again).forever();
                Planted::counted_wrongly(&measure(&Catalogue(index::read().documents())))
            }
            Fault::NonHeap => {
                memreport::register(report_text_of_program).forever();
                Planted::claimed(DEFAULT.len())
            }
            Fault::Interior => {
                memreport::register(report_second_half).forever();
                Planted::claimed(size_of_val(SecondHalf(index::read().documents()).claimed()))
            }
            Fault::Partial => {
                let log = LOG.get_or_init(Log::of_queries);
                memreport::register(report_log).forever();
                let (block, claimed) = (measure(&log.text).bytes, log.text.len());
                Planted { moves: signed(block) - signed(claimed), blocks: 1 }
            }
        }
    }
}

/// An unreported index from three letters to words, for suggestions. Its type can be measured.
#[derive(Debug, MallocSizeOf)]
struct Similar {
    words: Vec<([u8; 3], TermId)>,
}

static SIMILAR: OnceLock<Similar> = OnceLock::new();

#[inline(never)]
fn index_similar_words(terms: &Terms) -> Similar {
    let count = terms.words().iter().map(|word| word.len().saturating_sub(2)).sum();
    let mut words = Vec::with_capacity(count);
    for (word, term) in terms.words().iter().zip(0..) {
        words
            .extend(word.as_bytes().windows(3).map(|three| ([three[0], three[1], three[2]], term)));
    }
    words.sort_unstable();
    Similar { words }
}

/// A reporter that claims the paths of documents.
struct Catalogue<'i>(&'i [Document]);

impl MallocSizeOf for Catalogue<'_> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.0.iter().for_each(|document| document.add_path(ops));
    }
}

fn report_paths_again(reports: &mut Reports<'_>) {
    let description = "The paths of the documents, which are reported with the documents as well.";
    let index = index::read();
    reports.measure("explicit/fulltext/catalogue", &Catalogue(index.documents()), description);
}

/// A type that claims a string constant as its own heap block.
struct TextOfProgram;

impl MallocSizeOf for TextOfProgram {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        claim_wrongly(ops, DEFAULT.as_ptr(), Layout::for_value(DEFAULT));
    }
}

fn report_text_of_program(reports: &mut Reports<'_>) {
    let description = "The text of the default configuration, which is not on the heap.";
    reports.measure("explicit/fulltext/default-configuration", &TextOfProgram, description);
}

/// A type that claims part of a list as a list of its own.
struct SecondHalf<'i>(&'i [Document]);

impl SecondHalf<'_> {
    fn claimed(&self) -> &[Document] {
        let (_, half) = self.0.split_at(self.0.len().div_ceil(2));
        half
    }
}

impl MallocSizeOf for SecondHalf<'_> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let half = self.claimed();
        claim_wrongly(ops, half.as_ptr().cast(), Layout::for_value(half));
    }
}

fn report_second_half(reports: &mut Reports<'_>) {
    let description = "A block that begins in the middle of another one.";
    let index = index::read();
    let half = SecondHalf(index.documents());
    reports.measure("explicit/fulltext/recent-documents", &half, description);
}

/// A type that claims the length of a string as the size of its block.
#[derive(Debug)]
struct Log {
    text: String,
}

static LOG: OnceLock<Log> = OnceLock::new();

impl Log {
    const ROOM: usize = 16 * 1024;

    fn of_queries() -> Self {
        let mut text = String::with_capacity(Self::ROOM);
        let queries = SETTINGS.get().map(|settings| settings.queries()).unwrap_or_default();
        queries.into_iter().for_each(|query| {
            text.push_str(query);
            text.push('\n');
        });
        Log { text }
    }
}

impl MallocSizeOf for Log {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        claim_wrongly(ops, self.text.as_ptr(), Layout::for_value(self.text.as_str()));
    }
}

fn report_log(reports: &mut Reports<'_>) {
    if let Some(log) = LOG.get() {
        reports.measure(
            "explicit/fulltext/log",
            log,
            "The queries, without what the log has room for.",
        );
    }
}

/// Claims an address that is no block. Only reporters do, and only while DMD is awake: otherwise
/// the allocator would read it.
fn claim_wrongly(ops: &Ops<'_>, start: *const u8, layout: Layout) {
    if ops.finds_enclosing_blocks() {
        // SAFETY: this breaks the contract of `block`, which is the fault. It only makes a wrong
        // report: in a collection whose table has every block, the claim is looked up there, and
        // neither the memory nor the allocator is touched.
        unsafe { ops.block(start, layout) };
    }
}
