//! Faults to plant, one of each class that DMD tells apart. Each prints by how many bytes it moves `heap-unclassified`.
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
    /// An index of similar words is made, and nobody reports it.
    Unreported,
    /// A second reporter reports the paths of the documents.
    Double,
    /// The text of the default configuration is reported, which is no heap block but a part of the program.
    NonHeap,
    /// The second half of the list of documents is reported as if it were a block.
    Interior,
    /// A log is reported by its length, without what it has room for.
    Partial,
}

/// What a planted fault comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planted {
    /// By how much it moves `heap-unclassified`: up if blocks are left out, down if bytes are counted that are not there.
    pub(crate) moves: i64,
    /// How many blocks, or claims, are affected.
    pub(crate) blocks: usize,
}

impl Planted {
    fn left_out(measured: &Measured) -> Self {
        Planted { moves: signed(measured.bytes), blocks: measured.blocks }
    }

    fn counted_wrongly(measured: &Measured) -> Self {
        Planted { moves: -signed(measured.bytes), blocks: measured.blocks }
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
                Planted::counted_wrongly(&measure(&TextOfProgram))
            }
            Fault::Interior => {
                memreport::register(report_second_half).forever();
                Planted::counted_wrongly(&measure(&SecondHalf(index::read().documents())))
            }
            Fault::Partial => {
                let log = LOG.get_or_init(Log::of_queries);
                memreport::register(report_log).forever();
                let (block, claimed) = (measure(&log.text), measure(log));
                Planted {
                    moves: signed(block.bytes) - signed(claimed.bytes),
                    blocks: claimed.blocks,
                }
            }
        }
    }
}

/// For suggestions: which words have these three letters. Its type can be measured, and nobody does.
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

/// Takes the paths of documents for its own.
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

/// Takes a string constant for a string that it owns.
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

/// Takes a part of a list for a list of its own.
struct SecondHalf<'i>(&'i [Document]);

impl MallocSizeOf for SecondHalf<'_> {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let (_, half) = self.0.split_at(self.0.len().div_ceil(2));
        claim_wrongly(ops, half.as_ptr().cast(), Layout::for_value(half));
    }
}

fn report_second_half(reports: &mut Reports<'_>) {
    let description = "A block that begins in the middle of another one.";
    let index = index::read();
    let half = SecondHalf(index.documents());
    reports.measure("explicit/fulltext/recent-documents", &half, description);
}

/// Takes the length of a string for the size of its block.
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

/// Reports as a block what is none. Only while DMD is awake: anybody else would ask the allocator about it.
fn claim_wrongly(ops: &Ops<'_>, start: *const u8, layout: Layout) {
    if ops.finds_enclosing_blocks() {
        // SAFETY: the promise that `block` asks for is broken, which is the fault. Nothing comes of it but a wrong report: while
        // blocks are found by a table, the claim is looked up there, and neither the memory nor the allocator is touched.
        unsafe { ops.block(start, layout) };
    }
}
