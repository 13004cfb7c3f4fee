//! Tests of one heap in every format, and of its totals.

mod decoded;
mod over_time;
mod shown;
mod totals;

use super::{Format, Heap, HeapOptions, write};
use crate::analysis::Class;
use crate::heap::tests::HEAP;
use crate::read::{Dump, read_slice};

fn dump() -> Dump {
    read_slice(HEAP.as_bytes()).unwrap()
}

fn heap(dump: &Dump, only: Option<Class>) -> Heap {
    Heap::new(dump, &HeapOptions { only, ..HeapOptions::default() }).unwrap()
}

fn bytes(format: Format, heaps: &[Heap]) -> Vec<u8> {
    let mut out = Vec::new();
    write(format, heaps, &mut out).unwrap();
    out
}

fn text(format: Format, only: Option<Class>) -> String {
    String::from_utf8(bytes(format, &[heap(&dump(), only)])).unwrap()
}

fn json(format: Format, only: Option<Class>) -> serde_json::Value {
    serde_json::from_str(&text(format, only)).unwrap()
}

#[test]
fn a_format_takes_several_dumps_or_shows_time() {
    let having = |has: fn(Format) -> bool| -> Vec<Format> {
        Format::ALL.iter().copied().filter(|format| has(*format)).collect()
    };
    assert_eq!(having(Format::takes_several), [Format::Massif, Format::MemoryInfra]);
    assert_eq!(having(Format::has_time), [Format::Massif, Format::FirefoxProfiler]);
    assert_eq!(having(Format::takes_several_recordings), [Format::FirefoxProfiler]);
}
