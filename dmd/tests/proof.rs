//! The proof by drop, applied to types with known defects.

use std::rc::Rc;
use std::sync::Arc;

use dmd::testing::Proof;
use memreport::{Field, MallocSizeOf, Ops};

dmd::global_allocator!();

const WORD: usize = size_of::<usize>();

struct Page {
    text: String,
    links: Vec<String>,
    cache: Vec<Vec<u64>>,
    defect: Defect,
}

#[derive(Clone, Copy, PartialEq)]
enum Defect {
    None,
    MissesLinks,
    SkipsCache,
    CountsTextTwice,
}

impl MallocSizeOf for Page {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.field(const { &Field::of::<Self>("text", "page.rs", 3) }, &self.text);
        if self.defect == Defect::CountsTextTwice {
            ops.field(const { &Field::of::<Self>("text", "page.rs", 3) }, &self.text);
        }
        if self.defect != Defect::MissesLinks {
            ops.field(const { &Field::of::<Self>("links", "page.rs", 4) }, &self.links);
        }
        let cache = const { &Field::of::<Self>("cache", "page.rs", 5).ignored("it is small") };
        match self.defect {
            Defect::SkipsCache => ops.skip(cache, &self.cache),
            _ => ops.field(const { &Field::of::<Self>("cache", "page.rs", 5) }, &self.cache),
        }
    }
}

fn page(defect: Defect) -> Page {
    Page {
        text: "heap".repeat(25),
        links: vec!["a".repeat(30), "b".repeat(30)],
        cache: vec![vec![1; 10], vec![2; 20]],
        defect,
    }
}

#[track_caller]
fn defects(value: impl MallocSizeOf) -> String {
    let text = dmd::testing::fully_reported(value)
        .map_or_else(|defects| defects.to_string(), |()| "none".to_owned());
    // The blocks have stacks if another test has begun to keep them.
    let lines = text.lines().filter(|line| !line.starts_with("     allocated by "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the heap bytes that `value` owns, in usable sizes: an allocator may hand out a block
/// that is a little larger than the request.
fn heap_of(value: &impl MallocSizeOf) -> usize {
    memreport::measure(value).bytes
}

/// Returns the message with which an assertion fails.
fn complaint_of(assertion: impl FnOnce()) -> String {
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(assertion));
    let text = failed.map_err(|panic| panic.downcast_ref::<String>().cloned());
    text.err().flatten().unwrap_or_default()
}

struct ByHand {
    name: String,
    _pictures: Box<[u8; 500]>,
}

impl MallocSizeOf for ByHand {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.name);
    }
}

fn by_hand() -> ByHand {
    ByHand { name: "by hand".repeat(9), _pictures: Box::new([1; 500]) }
}

struct Album {
    parts: Vec<ByHand>,
}

impl MallocSizeOf for Album {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.field(const { &Field::of::<Self>("parts", "album.rs", 7) }, &self.parts);
    }
}

#[test]
fn a_field_that_an_impl_by_hand_forgets_is_named_with_its_line() {
    // Made in the macro, which keeps the stacks of its blocks.
    let text = complaint_of(|| dmd::assert_fully_reported!(by_hand()));
    let place = place("proof::ByHand", "_pictures", std::mem::offset_of!(ByHand, _pictures));
    let (_, size) = text.split_once(&format!("{place} is not measured: ")).unwrap_or_default();
    let bytes = size.split_once(" bytes in 1 block").and_then(|(bytes, _)| bytes.parse().ok());
    assert!(bytes.is_some_and(|bytes: usize| (500..600).contains(&bytes)), "{text}");
    let line = "allocated by proof::by_hand (";
    assert!(text.contains(line) && text.contains("dmd/tests/proof.rs:"), "{text}");
}

#[test]
fn a_field_that_the_impl_of_an_element_forgets_is_named() {
    let text =
        complaint_of(|| dmd::assert_fully_reported!(Album { parts: vec![by_hand(), by_hand()] }));
    let place = if cfg!(feature = "explain") {
        "proof::ByHand._pictures, in proof::Album.parts (album.rs:7),"
    } else {
        "something in a block of proof::Album.parts (album.rs:7)"
    };
    let expected = format!("{place} is not measured: ");
    assert!(text.contains(&expected) && text.contains(" bytes in 2 blocks missed"), "{text}");
}

/// Returns what a message says of a word in a value: the field, if debug information is read.
fn place(type_name: &str, field: &str, at: usize) -> String {
    if cfg!(feature = "explain") {
        format!("{type_name}.{field}")
    } else {
        format!("something at byte {at} of `{type_name}`")
    }
}

#[test]
fn a_type_that_measures_all_passes() {
    dmd::assert_fully_reported!(page(Defect::None));
}

const INEXACT_PAGE: &str = "`proof::Page` does not report exactly the heap that it owns:\n  ";

#[test]
fn a_skipped_field_is_named_with_its_reason() {
    let value = page(Defect::SkipsCache);
    let expected = format!(
        "{INEXACT_PAGE}proof::Page.cache (page.rs:5), skipped because \"it is small\", \
        is not measured: {} bytes in 3 blocks missed",
        heap_of(&value.cache)
    );
    assert_eq!(defects(value), expected);
}

#[test]
fn a_field_that_is_counted_twice_is_named_twice() {
    let value = page(Defect::CountsTextTwice);
    let expected = format!(
        "{INEXACT_PAGE}one block is counted 2 times: by proof::Page.text (page.rs:3) and by \
        proof::Page.text (page.rs:3): {} bytes in 1 block counted too often",
        heap_of(&value.text)
    );
    assert_eq!(defects(value), expected);
}

#[test]
fn a_field_that_is_forgotten_is_named() {
    let value = page(Defect::MissesLinks);
    let bytes = heap_of(&value.links);
    let text = defects(value);
    let place =
        if cfg!(feature = "explain") { "proof::Page.links is" } else { "something at byte " };
    assert!(text.starts_with(&format!("{INEXACT_PAGE}{place}")), "{text}");
    let end = format!(" is not measured: {bytes} bytes in 3 blocks missed");
    assert!(text.ends_with(&end), "{text}");
}

/// A value with a word that is no field's, like padding, and holds a pointer from before.
#[repr(C)]
struct Padded {
    rows: Vec<Vec<u64>>,
    padding: usize,
    is_skipped: bool,
}

impl MallocSizeOf for Padded {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        if self.is_skipped {
            let rows = const { &Field::of::<Self>("rows", "padded.rs", 3).ignored("it is a test") };
            ops.skip(rows, &self.rows);
        }
    }
}

fn padded(is_skipped: bool) -> Padded {
    let rows = vec![vec![1; 10], vec![2; 20]];
    Padded { padding: rows[1].as_ptr().addr(), rows, is_skipped }
}

#[test]
fn an_old_pointer_in_padding_is_not_the_place_of_a_block() {
    let skipped = "proof::Padded.rows (padded.rs:3), skipped because \"it is a test\",";
    let forgotten =
        if cfg!(feature = "explain") { "proof::Padded.rows is" } else { "something at byte " };
    for (is_skipped, place) in [(true, skipped), (false, forgotten)] {
        let value = padded(is_skipped);
        assert_ne!(value.padding, 0);
        let bytes = heap_of(&value.rows);
        let text = defects(value);
        let line =
            format!("`proof::Padded` does not report exactly the heap that it owns:\n  {place}");
        assert!(text.starts_with(&line), "{text}");
        let end = format!(" is not measured: {bytes} bytes in 3 blocks missed");
        assert!(text.ends_with(&end), "{text}");
    }
}

/// A value whose last word is half a field, and may hold a pointer from before in the other half.
#[repr(C)]
struct HalfWord {
    text: String,
    flag: u8,
    padding: [u8; WORD - 1],
}

impl MallocSizeOf for HalfWord {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.field(const { &Field::of::<Self>("flag", "half.rs", 4) }, &self.flag);
    }
}

#[test]
fn a_word_that_a_field_has_a_part_of_is_no_pointer() {
    let text = "heap".repeat(25);
    let [flag, padding @ ..] = text.as_ptr().addr().to_ne_bytes();
    let value = HalfWord { text, flag, padding };
    assert_eq!(value.padding.len(), WORD - 1);
    let text = defects(value);
    let last = std::mem::offset_of!(HalfWord, flag);
    assert!(!text.contains("flag") && !text.contains(&format!("byte {last} ")), "{text}");
    assert!(text.contains(" is not measured: "), "{text}");
}

struct Shared(Rc<[u64; 4]>);

impl MallocSizeOf for Shared {
    #[expect(unsafe_code, reason = "the defect under test")]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // SAFETY: while the tracker is awake, the table is read and the memory is not.
        unsafe { ops.block(Rc::as_ptr(&self.0), std::alloc::Layout::new::<[u64; 4]>()) };
    }
}

#[test]
fn a_pointer_past_the_counts_is_a_wrong_base() {
    let value = Shared(Rc::new([0; 4]));
    let bytes = heap_of(&value.0);
    let place = place("proof::Shared", "0", 0);
    let expected = format!(
        "`proof::Shared` does not report exactly the heap that it owns:\n  \
        {place} is not measured: {bytes} bytes in 1 block missed\n  \
        proof::Shared counts from inside a block, not from its start: 32 bytes in 1 block counted"
    );
    assert_eq!(defects(value), expected);
}

struct Short(Vec<u8>);

impl MallocSizeOf for Short {
    #[expect(unsafe_code, reason = "the defect under test")]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let Ok(layout) = std::alloc::Layout::array::<u8>(self.0.len()) else { return };
        // SAFETY: while the tracker is awake, the table is read and the memory is not.
        unsafe { ops.block(self.0.as_ptr(), layout) };
    }
}

#[test]
fn slack_that_is_left_out_is_a_partial_report() {
    let mut short = Vec::with_capacity(1000);
    short.extend([1; 10]);
    let bytes = heap_of(&short);
    let expected = format!(
        "`proof::Short` does not report exactly the heap that it owns:\n  \
        proof::Short counts 10 bytes of a block that has {bytes}: {} bytes in 1 block apart",
        bytes - 10
    );
    assert_eq!(defects(Short(short)), expected);
}

/// Counts an `Arc` in each field, as if it were not shared.
struct Twice(Arc<u64>, Arc<u64>);

impl MallocSizeOf for Twice {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let first =
            const { &Field::of::<Self>("0", "twice.rs", 1).shared(memreport::Shared::Here) };
        let second =
            const { &Field::of::<Self>("1", "twice.rs", 1).shared(memreport::Shared::Here) };
        ops.field(first, &self.0);
        ops.field(second, &self.1);
    }
}

#[test]
fn a_shared_value_that_two_fields_count_is_counted_too_often() {
    let shared = Arc::new(7);
    let expected = format!(
        "`proof::Twice` does not report exactly the heap that it owns:\n  \
        one block is counted 2 times: by proof::Twice.0 (twice.rs:1) and by proof::Twice.1 (twice.rs:1): \
        {} bytes in 1 block counted too often",
        heap_of(&shared)
    );
    assert_eq!(defects(Twice(Arc::clone(&shared), shared)), expected);
}

/// Counts a block that another owner also owns.
struct Borrowed(Rc<Vec<u8>>);

impl MallocSizeOf for Borrowed {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&*self.0);
    }
}

#[test]
fn an_owner_elsewhere_makes_a_block_foreign() {
    let owner = Rc::new(vec![1; 100]);
    let expected = format!(
        "`proof::Borrowed` does not report exactly the heap that it owns:\n  \
        proof::Borrowed counts a block that the value does not own: {} bytes in 1 block counted",
        heap_of(&*owner)
    );
    assert_eq!(defects(Borrowed(Rc::clone(&owner))), expected);
}

#[test]
fn an_owner_elsewhere_can_be_named() {
    let owner = Rc::new(vec![1; 100]);
    dmd::assert_fully_reported!(
        Borrowed(Rc::clone(&owner)),
        shared_with(&*owner, "the owner lends it"),
    );
    let other = vec![1; 100];
    let proof = Proof::of(Borrowed(Rc::clone(&owner)))
        .shared_with(&*owner, "the owner lends it")
        .shared_with(&other, "nobody lends it");
    let expected = "`proof::Borrowed` does not report exactly the heap that it owns:\n  \
        nothing is shared with the owner of which is said \"nobody lends it\"";
    assert_eq!(proof.check().map_err(|defects| defects.to_string()), Err(expected.to_owned()));
}

#[test]
fn other_threads_do_not_disturb() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                drop(vec![0_u8; 100]);
            }
        });
        for _ in 0..100 {
            dmd::assert_fully_reported!(page(Defect::None));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
