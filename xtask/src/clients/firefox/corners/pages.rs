//! Pages of reports: sums, trees, invalid values, names, processes.

#![expect(clippy::too_many_lines, reason = "tables are as long as they are")]

use super::{MB, Page, of, report, with};
use serde_json::{Value, json};

pub(crate) fn sums() -> Vec<Page> {
    vec![
        ("empty", vec![]),
        ("flat", vec![report("a", 5), report("b", 50 * MB)]),
        (
            "duplicates",
            vec![
                report("t/a", 5),
                report("t/a", 6),
                report("t/a", 7),
                report("t/b", 1),
                report("f", 1),
                report("f", 2),
            ],
        ),
        (
            "zero-first",
            vec![
                report("t/a", 0),
                report("t/a", 5),
                report("t/a", 6),
                report("t/b", 0),
                report("t/b", 0),
            ],
        ),
        ("zero-sum", vec![report("t/a", 5), report("t/a", -5), report("t/a", 3), report("t/b", 1)]),
        (
            "unclassified",
            vec![
                report("explicit/a", 30 * MB),
                report("explicit/b", 5 * MB),
                report("heap-allocated", 50 * MB),
            ],
        ),
        (
            "unclassified-negative",
            vec![report("explicit/a", 30 * MB), report("heap-allocated", 20 * MB)],
        ),
        (
            "unclassified-there",
            vec![
                report("explicit/heap-unclassified", 1),
                report("explicit/a", 9),
                report("heap-allocated", 50),
            ],
        ),
        (
            "unclassified-below",
            vec![
                report("explicit/heap-unclassified/x", 1),
                report("explicit/a", 9),
                report("heap-allocated", 50),
            ],
        ),
        ("unclassified-tree", vec![report("explicit/a", 9), report("heap-allocated/x", 50)]),
        (
            "non-heap",
            vec![
                with(report("explicit/a", 9), &json!({"kind": 0})),
                report("explicit/b", 9),
                report("heap-allocated", 50),
            ],
        ),
        ("explicit-flat", vec![report("explicit", 5), report("heap-allocated", 5)]),
        (
            "explicit-both",
            vec![report("explicit", 5), report("explicit/a", 7), report("heap-allocated", 9)],
        ),
        (
            "allocated-twice",
            vec![
                report("explicit/a", 9),
                report("heap-allocated", 50),
                report("heap-allocated", 5),
            ],
        ),
    ]
}

pub(crate) fn trees() -> Vec<Page> {
    let tiny = |count: i64, least: i64| {
        (0..count).map(move |i| report(&format!("t/small{i}"), least + i)).collect::<Vec<_>>()
    };
    let mut many = vec![report("t/large", 100_000)];
    many.extend(tiny(30, 900));
    let mut last = vec![report("t/large", 100_000), report("t/half", 50_000)];
    last.push(report("t/tiny", 5));
    let mut exactly = vec![report("t/large", 9_800)];
    exactly.extend([report("t/one-percent", 100), report("t/other", 100)]);
    let deep: Vec<Value> =
        (0..40).map(|i| report(&format!("t/{}x", "a/".repeat(i)), 1_i64 << i)).collect();
    vec![
        (
            "merged",
            vec![
                report("t/a/b/c", 5),
                report("t/a/b/d", 6),
                report("t/e/f/g", 7),
                report("u/a/b/c", 8),
            ],
        ),
        ("merged-duplicate", vec![report("t/a/b", 5), report("t/a/b", 5), report("t/c", 1)]),
        ("leaf-above-only-kid", vec![report("t/a", 5), report("t/a/b", 6), report("t/c", 1)]),
        (
            "leaf-twice-above-only-kid",
            vec![report("t/a", 5), report("t/a", 5), report("t/a/b", 6), report("t/c", 1)],
        ),
        ("tiny", many),
        ("tiny-all", tiny(200, 1000)),
        ("tiny-last", last),
        ("tiny-exactly", exactly),
        (
            "tiny-nested",
            vec![
                report("t/a", 100_000),
                report("t/b/c/d", 5),
                report("t/b/c/e", 5),
                report("t/b/f", 5),
                report("t/g", 1),
            ],
        ),
        (
            "tiny-zero",
            vec![report("t/a", 0), report("t/b", 0), report("t/c/d", 0), report("t/c/e", 0)],
        ),
        ("tiny-sum-large", [tiny(300, 1000), vec![report("t/x", 5000)]].concat()),
        ("deep", deep),
        (
            "widths",
            vec![
                report("t/a/x", 1),
                report("t/a/y", 1000 * MB),
                report("t/b/x", 9 * MB),
                report("t/b/y", 100 * MB),
            ],
        ),
        (
            "slashes",
            vec![
                report("t//a", 5),
                report("t/", 6),
                report("/", 7),
                report("//", 8),
                report("u/b/", 9),
                report("/x", 1),
            ],
        ),
        ("empty-name", vec![report("", 5), report("a", 6)]),
        (
            "backslashes",
            vec![
                report("t/http:\\\\a\\b", 5),
                report("t/http:\\\\a/c", 5),
                report("\\", 5),
                report("a\\b", 5),
            ],
        ),
    ]
}

pub(crate) fn invalid() -> Vec<Page> {
    vec![
        (
            "negative",
            vec![report("t/a", -5 * MB), report("t/b", 9 * MB), report("f", -MB), report("g", 1)],
        ),
        (
            "negative-explicit",
            vec![
                report("explicit/a/b", -5 * MB),
                report("explicit/c", 9 * MB),
                report("heap-allocated", 1),
            ],
        ),
        ("negative-total", vec![report("t/a", -5 * MB), report("t/b", MB), report("t/c", 0)]),
        (
            "negative-hidden",
            vec![
                report("explicit/a", 900 * MB),
                report("explicit/b/c/d", -5),
                report("explicit/b/c/e", 3),
                report("explicit/b/f", 7),
            ],
        ),
        (
            "too-large",
            vec![
                report("explicit/a/b", 100 * MB),
                report("explicit/a/c", MB),
                report("explicit/d", -50 * MB),
            ],
        ),
        (
            "too-large-of-tiny",
            (0..150)
                .map(|i| report(&format!("t/a/x{i}"), 99))
                .chain([report("t/b", -5_000)])
                .collect(),
        ),
        (
            "negative-zero",
            vec![report("t/a", -0.0), report("t/b", -1), report("f", -0.0), report("g", -111)],
        ),
        (
            "leaked",
            vec![
                report("t/a", -5),
                report("t/b", 6),
                of("Q", "explicit/a", 5),
                of("Q", "heap-allocated", -9),
            ],
        ),
        (
            "leaked-to-main",
            vec![
                report("f ", -5),
                report(" g", -6),
                of("Q", "explicit/a", 5),
                of("Main Process", "x", -9),
            ],
        ),
        (
            "warned-blanks",
            vec![
                report("explicit/ a  b\t", -5),
                report("explicit/c\u{a0}\u{a0}\nd ", -6),
                report("heap-allocated", 1),
            ],
        ),
    ]
}

pub(crate) fn names() -> Vec<Page> {
    let list = [
        "_", "-", ",", ";", ":", "!", "?", ".", "'", "\"", "(", ")", "[", "]", "{", "}", "@", "*",
        "\\", "&", "#", "%", "`", "^", "+", "<", "=", ">", "|", "~", "$", "0", "1", "10", "2", "9",
        "a", "A", "b", "B", "z", "Z", "á", "Á", "a\u{301}", "æ", "ae", "ß", "ss", "SS", "ﬁ", "fi",
        "ı", "i", "İ", "I", "ñ", "n\u{303}", "Ω", "Ω", "日", "本", "語", "あ", "ア", "한", "😀",
        "😁", "𝒳", "\u{feff}", "\u{200b}", "\u{ad}", "\t", "\n", " ", "\u{a0}", "\u{3000}", "٣",
        "३", "½", "²", "ª", "a-b", "ab", "a b", "a_b", "aB", "Ab", "co-op", "coop", "CO-OP",
        "résumé", "resume", "Resume", "\u{1}", "\u{7f}",
    ];
    let flats = list.iter().map(|name| report(name, 5)).collect();
    let kids = list.iter().map(|name| report(&format!("t/{name}"), 5)).collect();
    let trees = list.iter().map(|name| report(&format!("{name}/x"), 5)).collect();
    let codes = (0x21..0x250).chain(0x370..0x600).chain(0x1e00..0x2100).chain(0x3040..0x3100);
    // The sign of the Saudi riyal is of Unicode 17, which some browsers do not know yet.
    let letters = codes
        .filter_map(char::from_u32)
        .filter(|c| !['/', '\u{20c1}'].contains(c))
        .map(|c| report(&format!("t/{c}"), 5))
        .collect();
    let numbers = ["10", "9", "007", "-1", "4294967295", "4294967294", "1.5", "b", "a"];
    vec![
        ("names-flat", flats),
        ("names-kids", kids),
        ("names-trees", trees),
        ("names-letters", letters),
        (
            "names-numbers",
            numbers
                .iter()
                .flat_map(|name| [report(name, 5), report(&format!("{name}/x"), 5)])
                .collect(),
        ),
        (
            "names-equal",
            vec![
                report("a\u{1}", 5),
                report("a", 5),
                report("1", 5),
                report("1\u{1}", 5),
                report("0\u{1}", 5),
                report("0", 1),
            ],
        ),
        (
            "names-invisible",
            vec![
                report("a\u{0}b\rc\r\nd\u{b}e\u{c}f\u{2028}g", 5),
                report("t/\u{85}\u{202e}x/\u{feff}", 6),
            ],
        ),
        (
            "names-reserved",
            vec![
                report("t/__proto__", 5),
                report("t/constructor/toString", 6),
                report("toString", 5),
                report("constructor", 5),
            ],
        ),
        ("names-tiny", vec![report("t/(2 tiny)", 1), report("t/a", 1), report("t/b", 1000)]),
    ]
}

pub(crate) fn processes() -> Vec<Page> {
    let names = [
        "web (pid 3)",
        "Main Process (pid 1)",
        "B",
        "a",
        "10",
        "9",
        "Main Process",
        "é",
        "\u{ff5e}",
        "😀",
        "Main Processes",
    ];
    let mut sized = Vec::new();
    for (index, name) in names.iter().enumerate() {
        sized.push(of(name, "resident", [5, 0, 7, -1, 7][index % 5] * MB));
        sized.push(of(name, "resident-unique", [0, 3, 4][index % 3] * MB));
    }
    vec![
        ("processes", names.iter().map(|name| of(name, "a", 5)).collect()),
        ("processes-sized", sized),
        (
            "processes-resident-twice",
            vec![report("resident", 9 * MB), report("resident", MB), of("Q", "resident", 5 * MB)],
        ),
        (
            "processes-blanks",
            vec![
                of("  a  b\t", "x", 5),
                of(" ", "x", 5),
                of("a\u{a0}\u{a0}b\u{a0}", "x", 5),
                of("c\nd\u{0}", "x", 5),
            ],
        ),
        (
            "processes-odd",
            vec![
                with(report("a", 5), &json!({"process": 17})),
                with(report("a", 5), &json!({"process": true})),
            ],
        ),
        (
            "processes-many",
            (0..60)
                .map(|i| of(&format!("p{}", i * 7 % 60), "resident", i64::from(i % 4)))
                .collect(),
        ),
        (
            "processes-mains",
            (0..30)
                .map(|i| of(&format!("Main Process {}", i * 7 % 30), "resident", i64::from(i % 4)))
                .collect(),
        ),
    ]
}
