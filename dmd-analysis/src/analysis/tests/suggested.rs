//! Suggestions, rule by rule, on small dumps.

use crate::analysis::{Class, ExplainOptions, explain};
use crate::read::read_slice;

/// Returns the suggestion for the first place of the class, in a dump with this block and this
/// extension.
fn suggestion(class: Class, block: &str, extension: &str) -> Option<String> {
    const REGISTRY: &str = "/c/registry/src/i";
    let text = format!(
        r##"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"dark-matter"}},
        "memreport":{{"version":1,"program":"/p",
          "reports":{{"F":{{"path":"explicit/f","type":"subject::F","field":"f"}},"G":{{"path":"explicit/g","type":"subject::G","field":"g"}},
            "H":{{"path":"explicit/h","type":"subject::H","field":"h","shared":"here"}},"P":{{"path":"explicit/p"}},"Q":{{"path":"explicit/q"}}}},
          "holders":{{{extension}}},"reportedStatics":[{{"module":"/p","offset":"8","name":"subject::PART"}}]}},
        "blockList":[{block}],
        "traceTable":{{"A":["a"],"S":["s","a"],"F":[],"G":[],"H":[],"P":[],"Q":[]}},
        "frameTable":{{"a":"#00: subject::main (/s/src/main.rs:3)","s":"#00: arc_swap::new ({REGISTRY}/arc-swap-1.7.1/src/lib.rs:5)"}}}}"##
    );
    let explained = explain(&read_slice(text.as_bytes()).unwrap(), &ExplainOptions::default());
    explained.places(class)[0].suggestion.clone()
}

#[test]
fn what_holds_a_dark_block_tells_what_to_do() {
    let of_static = |name: &str| format!(r#""K":{{"module":"/p","offset":"10","name":"{name}"}}"#);
    let lazy = of_static("<subject::RE as core::ops::deref::Deref>::deref::__stability::LAZY");
    let table = [
        (of_static("subject::CACHE"), Some("no reporter reaches static subject::CACHE: register one")),
        (lazy, Some("no reporter reaches static subject::RE: register one")),
        (of_static("subject::WORDS.0"), Some("no reporter reaches static subject::WORDS: register one")),
        (
            of_static("subject::PART"),
            Some("measured by hand: the reporter of static subject::PART does not visit all it holds"),
        ),
        (
            of_static("log::LOGGER"),
            Some("held by static log::LOGGER of a library: none of the program's own"),
        ),
        (of_static("std::io::stdio::STDOUT"), None),
        (of_static("main_arena"), None),
        (
            r#""K":{"type":"subject::F","field":"cache","file":"src/f.rs","line":41,"reason":"made again"}"#.to_owned(),
            Some("field subject::F.cache is skipped at src/f.rs:41 (\"made again\")"),
        ),
    ];
    for (holder, expected) in table {
        let block = r#"{"req":8,"alloc":"A","heldBy":"K"}"#;
        assert_eq!(suggestion(Class::Unreported, block, &holder).as_deref(), expected, "{holder}");
        let behind = block.replace("heldBy", "heldThrough");
        let perhaps = expected.map(|expected| format!("perhaps {expected}"));
        assert_eq!(suggestion(Class::Unreported, &behind, &holder), perhaps, "{holder}");
    }
}

#[test]
fn a_few_blocks_of_many_decide_nothing_unless_they_are_held_directly() {
    let holder = r#""K":{"module":"/p","offset":"10","name":"subject::CACHE"}"#;
    let blocks =
        |held| format!(r#"{{"req":8,"alloc":"A","{held}":"K"}},{{"req":8,"alloc":"A","num":9}}"#);
    assert_eq!(suggestion(Class::Unreported, &blocks("heldThrough"), holder), None);
    assert_eq!(
        suggestion(Class::Unreported, &blocks("heldBy"), holder).as_deref(),
        Some("no reporter reaches static subject::CACHE: register one (1 of the 10 blocks)")
    );
}

#[test]
fn the_crate_that_asked_for_a_block_may_have_a_feature() {
    let found = suggestion(Class::Unreported, r#"{"req":8,"alloc":"S"}"#, "");
    assert_eq!(found.as_deref(), Some("perhaps enable feature \"arc-swap\" of memreport"));
    let on = r#""K":{"module":"/p"}},"features":["arc-swap"],"other":{"#;
    assert_eq!(suggestion(Class::Unreported, r#"{"req":8,"alloc":"S"}"#, on), None, "it is on");
}

#[test]
fn two_reporters_are_told_who_should_leave_a_block_out() {
    let table = [
        (r#""F","F""#, "subject::F.f comes to it twice: once is enough"),
        (r#""F","P""#, "explicit/p counts by hand what subject::F.f owns: leave it out there"),
        (r#""P","F""#, "explicit/p counts by hand what subject::F.f owns: leave it out there"),
        (r#""P","Q""#, "explicit/p and explicit/q both count it by hand: leave it out of one"),
        (
            r#""F","H""#,
            "#[malloc_size_of(shared = elsewhere)] on subject::F.f: subject::H.h counts it",
        ),
        (
            r#""H","G""#,
            "#[malloc_size_of(shared = elsewhere)] on subject::G.g: subject::H.h counts it",
        ),
        (
            r#""F","G""#,
            "subject::F.f and subject::G.g both count it: #[malloc_size_of(ignore = \"…\")] on the one that does not own it",
        ),
    ];
    for (reports, expected) in table {
        let block = format!(r#"{{"req":8,"alloc":"A","reps":[{reports}]}}"#);
        let found = suggestion(Class::TwiceReported, &block, "");
        assert_eq!(found.as_deref(), Some(expected), "{reports}");
    }
}

#[test]
fn coverage_also_lists_places_without_a_suggestion() {
    let text = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"dark-matter"},
        "memreport":{"version":1,"program":"/p"},
        "blockList":[{"req":1280512,"alloc":"A"},{"req":100,"alloc":"A"},{"req":8}],
        "traceTable":{"A":["a"]},"frameTable":{"a":"#00: subject::main (/s/src/main.rs:3)"}}"##;
    let dump = read_slice(text.as_bytes()).unwrap();
    let found = crate::analysis::coverage(&dump, &ExplainOptions::default()).unwrap();
    let first = &found.suggestions[0];
    assert_eq!(first.bytes, 1_280_612);
    assert!(
        first.text.starts_with("report blocks of unknown type that subject::main"),
        "{first:?}"
    );
    assert_eq!(found.suggestions.len(), 2);
    assert!(found.suggestions[1].text.contains("without a stack"), "{found:?}");
}
