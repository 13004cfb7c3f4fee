//! Tests of the words for axes, and of the names of groups that are ranges.

use std::sync::Arc;

use super::ranges::{age_group, size_class};
use super::{Attributes, Axis, AxisError, GroupBy, Key, ReportState, StackCut, key};

fn axis(word: &str) -> Axis {
    word.parse().unwrap_or_else(|error| panic!("{word}: {error}"))
}

#[test]
fn every_word_is_read_as_its_axis() {
    for word in Axis::words() {
        let expected = axis(word.name);
        assert_eq!(expected.name(), word.name);
        for alias in word.aliases {
            assert_eq!(axis(alias), expected, "{alias}");
        }
    }
    let cut = StackCut { depth: 3.try_into().ok(), invert: false };
    assert_eq!(axis(" stacks:3 "), Axis::Stack(cut));
    assert_eq!(axis("reporter:2"), Axis::Reporter { depth: 2.try_into().ok() });
}

#[test]
fn errors_name_the_axes() {
    let known = "reporter, type, stack, site, state, file, field, thread, scope, crate, size, size-class, age";
    let table = [
        ("typ", format!("cannot group by `typ`; known are {known}")),
        ("type,", format!("cannot group by ``; known are {known}")),
        (
            "type:2",
            "`type:2`: must be without a number: only `reporter` and `stack` can be cut".into(),
        ),
        ("stack:0", "`stack:0`: must be cut at a number from 1 on".into()),
        ("stack:x", "`stack:x`: must be cut at a number from 1 on".into()),
        ("stack,type,stack:2", "`stack`: must be named only once".into()),
    ];
    for (words, expected) in table {
        assert_eq!(words.parse::<GroupBy>().unwrap_err().to_string(), expected, "{words}");
    }
    let refused = "stack,age".parse::<GroupBy>().unwrap().each_of(&["stack", "type"]);
    let expected = AxisError::Unsupported { name: "age", supported: &["stack", "type"] };
    assert_eq!(refused, Err(expected.clone()));
    assert_eq!(expected.to_string(), "cannot group by `age` here, but by stack, type");
}

#[test]
fn size_classes_end_at_powers_of_two() {
    let table = [
        (0, "0"),
        (1, "1"),
        (2, "2"),
        (3, "3-4"),
        (4, "3-4"),
        (5, "5-8"),
        (64, "33-64"),
        (65, "65-128"),
        (1 << 63, "4611686018427387905-9223372036854775808"),
        (u64::MAX, "9223372036854775809-18446744073709551615"),
    ];
    for (size, class) in table {
        assert_eq!(size_class(size), class);
    }
}

#[test]
fn age_groups_begin_at_edges() {
    let edges = [250, 1000, 90_000, 3_600_000, 172_800_000];
    let table = [
        (0, "under 250 ms"),
        (249, "under 250 ms"),
        (250, "250 ms to 1 s"),
        (1000, "1 s to 90 s"),
        (90_000, "90 s to 1 h"),
        (3_600_000, "1 h to 2 d"),
        (u64::MAX, "2 d and over"),
    ];
    for (age, group) in table {
        assert_eq!(age_group(&edges, age), group);
    }
}

/// A source of blocks by their sizes. It looks up no more than it must.
struct Sizes;

impl Attributes for Sizes {
    type Block = u64;

    fn size(&self, size: &u64) -> u64 {
        *size
    }

    fn state(&self, size: &u64) -> ReportState {
        if *size == 0 { ReportState::Unreported } else { ReportState::Twice }
    }

    fn reporters(&mut self, size: &u64) -> Vec<String> {
        let paths = ["explicit/cache/pages", "explicit/pool", "explicit/cache/keys"];
        paths[..if *size == 0 { 0 } else { 3 }].iter().map(|&path| path.to_owned()).collect()
    }

    fn fields(&mut self, _: &u64) -> Vec<String> {
        vec!["Cache.pages".into(), "Pool.free".into()]
    }

    fn scopes(&mut self, _: &u64) -> Vec<String> {
        vec!["request".into(), "search".into()]
    }

    fn thread(&mut self, _: &u64) -> Option<String> {
        None
    }

    fn type_name(&mut self, _: &u64) -> Option<String> {
        Some("String".into())
    }

    fn stack(&mut self, _: &u64, cut: StackCut) -> Option<Arc<[Arc<str>]>> {
        Some(cut.apply(vec![Arc::from("shop::load"), Arc::from("shop::main")]).into())
    }
}

#[test]
fn a_block_has_a_key_on_each_axis_that_its_source_looks_up() {
    let table = [
        ("reporter", Some("explicit/cache/pages and explicit/pool and explicit/cache/keys")),
        ("reporter:1", Some("explicit")),
        ("reporter:2", Some("explicit/cache and explicit/pool")),
        ("reporter:9", Some("explicit/cache/pages and explicit/pool and explicit/cache/keys")),
        ("type", Some("String")),
        ("stack", Some("shop::load < shop::main")),
        ("stack:1", Some("shop::load")),
        ("state", Some("twice")),
        ("field", Some("Cache.pages and Pool.free")),
        ("scope", Some("request > search")),
        ("size", Some("1,200 bytes")),
        ("size-class", Some("1025-2048")),
        ("thread", None),
        ("site", None),
        ("file", None),
        ("crate", None),
        ("age", None),
    ];
    for (word, expected) in table {
        let found = key(&mut Sizes, &1200, &axis(word)).map(|key| key.describe());
        assert_eq!(found.as_deref(), expected, "{word}");
    }
    assert_eq!(key(&mut Sizes, &0, &Axis::reporter()), None);
    assert_eq!(key(&mut Sizes, &0, &Axis::State), Some(Key::Fixed("unreported")));
}
