//! Tests of breakdowns as texts, and of errors in them.

use crate::census::{Axis, Breakdown, Bucket, Count, Split, StateSplit};

fn parsed(text: &str) -> Breakdown {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn spidermonkey_s_word_for_types_is_ours() {
    let ours = parsed(r#"{"by":"type","then":{"by":"bucket"},"other":{"by":"thread"}}"#);
    let theirs = r#"{"by":"objectClass","then":{"by":"bucket"},"other":{"by":"thread"}}"#;
    assert_eq!(parsed(theirs), ours);
}

#[test]
fn parts_of_spidermonkey_without_a_counterpart_are_refused_with_the_reason() {
    for (text, expected) in [
        (
            r#"{"by":"internalType"}"#,
            "`internalType` has no counterpart: it is the type that SpiderMonkey itself gives a thing; \
             a block has one type, which `type` groups by",
        ),
        (
            r#"{"by":"type","then":{"by":"descriptiveType"}}"#,
            "`then`: `descriptiveType` has no counterpart: it is a description that the embedder gives \
             a thing; paths describe blocks, and `reporter` groups by them",
        ),
        (
            r#"{"by":"coarseType","objects":{"by":"objectClass"}}"#,
            "`objects` has no counterpart: it is a kind of JavaScript things; the coarse types of \
             blocks are unreported, once, twice, other",
        ),
    ] {
        assert_eq!(text.parse::<Breakdown>().unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn a_missing_breakdown_is_a_count() {
    let whole = r#"{"by":"allocationStack","then":{"by":"count","count":true,"bytes":true},"noStack":{"by":"count"}}"#;
    assert_eq!(parsed(whole), parsed(r#"{"by":"allocationStack"}"#));
    let stack = Axis::stack();
    assert_eq!(parsed(whole), Split::by(stack).into());
    assert_eq!(parsed(r#"{"by":"coarseType"}"#), StateSplit::default().into());
}

#[test]
fn a_breakdown_is_written_as_it_is_read() {
    let table = [
        Breakdown::default(),
        Breakdown::usual(),
        Count::default().count(false).bytes(false).slop(true).label("a \"label\"").into(),
        Bucket::default().limit(3).into(),
        StateSplit::all(Split::by(Axis::Crate).otherwise(Bucket::default())).into(),
        Split::by(Axis::Age { edges: vec![5, 10] }).into(),
        vec![Split::by(Axis::SizeClass).into(), Breakdown::default()].into(),
        Breakdown::of_words("reporter:2,type,stack:3,state,age").unwrap(),
        vec![Split::by(Axis::Site).into(), Split::by(Axis::Size).into()].into(),
        Split::by(Axis::State).then(Split::by(Axis::Type)).into(),
    ];
    for breakdown in table {
        assert_eq!(parsed(&breakdown.to_json()), breakdown, "{}", breakdown.to_json());
    }
    // Every block has a size, so the breakdown for blocks without a key is ignored.
    let size = Split::by(Axis::SizeClass);
    assert_eq!(size.clone().otherwise(Bucket::default()), size);
}

#[test]
fn errors_contain_their_place() {
    let names = "known are count, bucket, coarseType, allocationStack, type, objectClass, filename, \
                 reporter, field, thread, scope, crate, sizeClass, age, site, size";
    let table = [
        (r#"{"by":"nonsense"}"#, format!("cannot group by `nonsense`; {names}")),
        (
            r#"[{"by":"count"},{"by":"scope","noScope":{"by":"x"}}]"#,
            format!("`1.noScope`: cannot group by `x`; {names}"),
        ),
        ("{}", "must be an object with `by`".into()),
        ("[1]", "`0`: must be an object with `by`, or an array of such objects".into()),
        (
            r#"{"by":"type","then":null}"#,
            "`then`: must be an object with `by`, or an array of such objects".into(),
        ),
        (r#"{"by":7}"#, "`by`: must be a text".into()),
        (
            r#"{"by":"coarseType","object":{"by":"objectClass"}}"#,
            "`coarseType` has no property `object`, but unreported, once, twice, other".into(),
        ),
        (
            r#"{"by":"type","then":{"by":"count","byte":false}}"#,
            "`then`: `count` has no property `byte`, but count, bytes, slop, label".into(),
        ),
        (r#"{"by":"count","bytes":1}"#, "`bytes`: must be true or false".into()),
        (r#"{"by":"count","label":1}"#, "`label`: must be a text".into()),
        (r#"{"by":"bucket","limit":-1}"#, "`limit`: must be a whole number below 2^32".into()),
        (r#"{"by":"reporter","depth":0}"#, "`depth`: must be at least 1".into()),
        (
            r#"{"by":"age","edges":[2,1]}"#,
            "`edges`: must be milliseconds, each more than the one before".into(),
        ),
        (
            r#"{"by":"age","edges":[]}"#,
            "`edges`: must be milliseconds, each more than the one before".into(),
        ),
        (
            r#"{"by":"#,
            "the breakdown is not JSON: EOF while parsing a value at line 1 column 6".into(),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(text.parse::<Breakdown>().unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn people_write_words() {
    let table = [
        (
            "reporter:2,type",
            r#"{"by":"reporter","depth":2,"noReporter":{"by":"type"},"then":{"by":"type"}}"#,
        ),
        (
            " scope , size",
            r#"{"by":"scope","noScope":{"by":"sizeClass"},"then":{"by":"sizeClass"}}"#,
        ),
        ("state", r#"{"by":"coarseType"}"#),
        ("files", r#"{"by":"filename"}"#),
        ("age", r#"{"by":"age","edges":[1000,60000,3600000]}"#),
        ("allocationStack:1", r#"{"by":"allocationStack","depth":1}"#),
    ];
    for (words, json) in table {
        assert_eq!(Breakdown::of_words(words).unwrap(), parsed(json), "{words}");
    }
}

#[test]
fn a_breakdown_has_a_name_and_those_within_it() {
    let table: [(&str, &str, &[&str]); 7] = [
        (r#"{"by":"count"}"#, "count", &[]),
        (r#"{"by":"count","label":"all"}"#, "all", &[]),
        (r#"{"by":"bucket"}"#, "bucket", &[]),
        (
            r#"{"by":"coarseType","once":{"by":"bucket"}}"#,
            "coarseType",
            &["count", "bucket", "count", "count"],
        ),
        (r#"{"by":"thread","then":{"by":"bucket"}}"#, "thread", &["bucket", "count"]),
        // Every block has a size.
        (r#"{"by":"sizeClass","then":{"by":"bucket"}}"#, "sizeClass", &["bucket"]),
        (r#"[{"by":"bucket"},{"by":"scope"}]"#, "several", &["bucket", "scope"]),
    ];
    for (text, name, within) in table {
        let breakdown = parsed(text);
        let found: Vec<&str> = breakdown.inner().into_iter().map(Breakdown::name).collect();
        assert_eq!((breakdown.name(), &*found), (name, within), "{text}");
    }
}
