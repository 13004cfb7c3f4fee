//! Tests interners and compressed sets.

use dmd::assert_fully_reported;
use lasso::{Capacity, Rodeo};
use roaring::{RoaringBitmap, RoaringTreemap};
use string_interner::StringInterner;
use string_interner::backend::{Backend, BucketBackend, BufferBackend, StringBackend};

use super::{owns_blocks, text, texts};

fn rodeo(number: usize) -> Rodeo {
    let mut rodeo = Rodeo::default();
    texts(number).for_each(|text| _ = rodeo.get_or_intern(text));
    rodeo.get_or_intern("");
    rodeo.get_or_intern_static("a text of the program");
    rodeo
}

#[test]
fn texts_of_lasso() {
    for number in [1, 10, 1000, 10_000] {
        assert_fully_reported!(rodeo(number));
        assert_fully_reported!(rodeo(number).into_reader());
        assert_fully_reported!(rodeo(number).into_resolver());
    }
    let mut long = Rodeo::<lasso::MiniSpur>::with_capacity(Capacity::for_strings(7));
    long.get_or_intern("short");
    long.get_or_intern(text(100_000));
    assert_fully_reported!(long);
    // The first bucket has no text.
    owns_blocks(&Rodeo::<lasso::Spur>::new(), 3);
}

fn interner<B: Backend<Symbol: string_interner::Symbol>>(number: usize) -> StringInterner<B> {
    let mut interner = StringInterner::new();
    texts(number).for_each(|text| _ = interner.get_or_intern(text));
    interner.get_or_intern_static("a text of the program");
    interner.get_or_intern("");
    interner
}

#[test]
fn texts_of_string_interner() {
    for number in [1, 10, 1000] {
        assert_fully_reported!(interner::<StringBackend>(number));
        assert_fully_reported!(interner::<BucketBackend>(number));
        assert_fully_reported!(interner::<BufferBackend>(number));
    }
    assert_fully_reported!(StringInterner::<StringBackend>::new());
    assert_fully_reported!(StringInterner::<BucketBackend>::with_capacity(100));
    assert_fully_reported!(interner::<BufferBackend>(9).clone());
}

#[test]
fn compressed_sets() {
    assert_fully_reported!(RoaringBitmap::new());
    // A few in each container, nearly all of one, and a run.
    let mut bitmap: RoaringBitmap = (0..1000).map(|index| index * 65_536 + 32).collect();
    bitmap.extend((0..60_000).map(|index| index / 7 * 11));
    bitmap.insert_range(70_000_000..70_060_000);
    assert_fully_reported!(bitmap.clone());
    bitmap.optimize();
    assert_fully_reported!(bitmap.clone());
    bitmap.remove_range(0..65_000_000);
    assert_fully_reported!(bitmap.clone());
    assert_fully_reported!([bitmap.clone() & bitmap.clone(), bitmap]);
    assert_fully_reported!(RoaringBitmap::full());
}

#[test]
fn trees_of_compressed_sets() {
    assert_fully_reported!(RoaringTreemap::new());
    let mut map: RoaringTreemap = (0..2000_u64).map(|index| index << 28).collect();
    assert_fully_reported!(map.clone());
    map.clear();
    assert_fully_reported!(map);
    let mut map: RoaringTreemap = (0..200_u64).map(|index| index << 32).collect();
    map.remove_range(..);
    assert_fully_reported!(map);
}
