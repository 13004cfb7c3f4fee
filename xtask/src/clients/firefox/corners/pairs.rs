//! Pairs of differing files.

#![expect(clippy::too_many_lines, reason = "tables are as long as they are")]

use super::{MB, of, report, with};
use serde_json::{Value, json};

type Pair = (&'static str, Vec<Value>, Vec<Value>);

pub(crate) fn diffs() -> Vec<Pair> {
    let many = |from: i64, factor: i64| {
        (0..60)
            .map(|i| report(&format!("t/k{i}/x{}", i % 7), from + factor * i))
            .collect::<Vec<_>>()
    };
    let volatile = |number: i64| -> Vec<Value> {
        [
            "x/Pool #7 (tid=@)/(tid=@)",
            "js/zone(0x@)/a",
            "js/zone(0x@)",
            "w/worker(http:\\\\x, 0x@)/b",
            "a/pid @, pid=@, pid: @",
            "explicit/window-objects/top(u, id=@)/top(v, id=@)/a",
            "event-counts/window-objects/top(u, id=@)/b",
            "other/window-objects/top(u, id=@)/c",
            "address-space/a(segments=@)/b(segments=@)",
            "address/a(segments=@)",
            "p/moz-nullprincipal:{0123456@-89ab-cdef-0123-456789abcde@}/x",
            "jar:file:\\\\\\usr@\\omni.ja!\\y/z",
            "s/source(scripts=@, a)/source(scripts=@, b)",
        ]
        .iter()
        .map(|path| {
            of(&format!("web (pid {number})"), &path.replace('@', &number.to_string()), number * MB)
        })
        .collect()
    };
    vec![
        ("diff-same", vec![report("t/a", 5)], vec![report("t/a", 5)]),
        (
            "diff",
            vec![report("t/a", 5 * MB), report("t/b", 6 * MB), report("f", 1)],
            vec![report("t/a", 9 * MB), report("t/b", MB), report("f", 3)],
        ),
        (
            "diff-presence",
            vec![report("t/a", 5), report("t/b/c", 6), report("f", 1)],
            vec![report("t/a", 9), report("t/d/e", 7), report("g", 3)],
        ),
        ("diff-merged-marks", vec![report("c/d", 5)], vec![report("e/f", 5), report("g/h/i", 1)]),
        (
            "diff-duplicates",
            vec![report("t/a", 5), report("t/a", 6), report("t/b", 1)],
            vec![report("t/a", 50), report("t/b", 2), report("t/b", 2), report("t/b", 2)],
        ),
        (
            "diff-fake",
            vec![report("t/a/b", 5), report("t/a/c", 6)],
            vec![report("t/a", 30), report("t/d", 1)],
        ),
        ("diff-fake-one", vec![report("t/a/b", 5)], vec![report("t/a", 30)]),
        ("diff-fake-root", vec![report("t/b", 5), report("t/c", 5)], vec![report("t", 30)]),
        (
            "diff-swings",
            vec![report("t/a/b", 500), report("t/a/c", 0), report("t/d", 1)],
            vec![report("t/a/b", 0), report("t/a/c", 500), report("t/d", 3)],
        ),
        ("diff-many", many(100, 3), many(90, 4)),
        ("diff-many-back", many(5, 1), [many(5, 1), many(1, 1)].concat()),
        (
            "diff-unclassified",
            vec![report("explicit/a", 5 * MB), report("heap-allocated", 20 * MB)],
            vec![report("explicit/a", 7 * MB), report("heap-allocated", 21 * MB)],
        ),
        ("diff-volatile", volatile(3), volatile(8)),
        (
            "diff-isolated",
            vec![
                of("webIsolated=https://a (pid 3)", "a", 5),
                of("webIsolated=https://b (pid 4)", "a", 6),
                of("web (pid 9)", "a", 1),
            ],
            vec![of("web (pid 5)", "a", 50), of("web (pid 6)", "b", 5)],
        ),
        (
            "diff-isolated-both",
            vec![of("webIsolated=https://a (pid 3)", "a", 5)],
            vec![of("webIsolated=https://a (pid 5)", "a", 50), of("web (pid 6)", "a", 5)],
        ),
        ("diff-kinds", vec![report("a", 5)], vec![with(report("a", 6), &json!({"kind": 1}))]),
        (
            "diff-kinds-alike",
            vec![report("a", 5)],
            vec![with(report("a", 6), &json!({"kind": "2"}))],
        ),
        ("diff-units", vec![report("a", 5)], vec![with(report("a", 6), &json!({"units": 1}))]),
        (
            "diff-missing",
            vec![report("a", 5)],
            vec![with(report("a", 6), &json!({"description": null}))],
        ),
        (
            "diff-process-number",
            vec![report("a", 5)],
            vec![with(report("a", 6), &json!({"process": 6}))],
        ),
        (
            "diff-texts",
            vec![with(report("a", 5), &json!({"amount": "5"})), report("b", 1)],
            vec![
                with(report("a", 6), &json!({"amount": "7"})),
                with(report("c", 6), &json!({"amount": "8"})),
            ],
        ),
        (
            "diff-separator",
            vec![of("p", "a^:^:^b/c", 5), of("p", "x/y", 1)],
            vec![of("p^:^:^q", "a", 7), of("p", "x/y", 2)],
        ),
        (
            "diff-negative-total",
            vec![report("t/a", 50 * MB), report("t/b", 5 * MB), report("t/c", 9)],
            vec![report("t/a", MB), report("t/b", 6 * MB), report("t/c", 7)],
        ),
        (
            "diff-zero-total",
            vec![report("t/a", 5), report("t/b", 9)],
            vec![report("t/a", 9), report("t/b", 5)],
        ),
        (
            "diff-processes",
            vec![
                of("A (pid 1)", "resident", 5),
                of("B (pid 2)", "resident", 7),
                of("Main Process (pid 3)", "resident", 8),
            ],
            vec![
                of("A (pid 9)", "resident", 50),
                of("B (pid 8)", "resident", 70),
                of("C (pid 7)", "x", 8),
            ],
        ),
        (
            "diff-large",
            vec![report("a", i64::MIN), report("b", (1_i64 << 53) + 1)],
            vec![report("a", i64::MAX), report("b", 1_i64 << 53)],
        ),
        ("diff-empty", vec![], vec![report("t/a", 5)]),
    ]
}
