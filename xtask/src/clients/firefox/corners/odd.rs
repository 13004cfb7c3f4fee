//! Unusual units, kinds and amounts, and reports that Firefox refuses.

#![expect(clippy::too_many_lines, reason = "tables are as long as they are")]

use super::{MB, Page, of, report, with};
use serde_json::{Value, json};

pub(crate) fn units() -> Vec<Page> {
    let in_units =
        |path: &str, units: i64, amount: i64| with(report(path, amount), &json!({"units": units}));
    vec![
        (
            "units",
            (0..4)
                .flat_map(|u| {
                    [
                        in_units(&format!("t{u}/a"), u, 12345),
                        in_units(&format!("t{u}/b"), u, -67),
                        in_units(&format!("f{u}"), u, 1_234_567),
                    ]
                })
                .collect(),
        ),
        ("units-mixed", vec![in_units("t/a", 0, 5), in_units("t/b", 1, 5)]),
        (
            "units-mixed-merged",
            vec![in_units("t/a", 0, 5), in_units("t/b", 0, 5), in_units("t/b/c", 1, 5)],
        ),
        ("units-mixed-flat", vec![in_units("a", 0, 5), in_units("a", 1, 5)]),
        ("units-unknown", vec![in_units("a", 4, 5)]),
        ("units-text", vec![with(report("a", 5), &json!({"units": "0"}))]),
        (
            "units-percent",
            vec![in_units("t/a", 3, 12000), in_units("t/b", 3, 5), in_units("t/c", 3, 0)],
        ),
    ]
}

pub(crate) fn refused() -> Vec<Page> {
    vec![
        ("kind-in-explicit", vec![with(report("explicit/a", 5), &json!({"kind": 2}))]),
        ("units-in-explicit", vec![with(report("explicit/a", 5), &json!({"units": 1}))]),
        ("leaf-and-tree", vec![report("t/a", 5), report("t/a/b", 6), report("t/a/c", 7)]),
        ("tree-and-leaf", vec![report("t/a/b", 6), report("t/a/c", 7), report("t/a", 5)]),
        ("leaf-of-zero-and-tree", vec![report("t/a", 0), report("t/a/b", 6), report("t/a/c", 7)]),
        ("no-path", vec![with(report("a", 5), &json!({"path": null}))]),
        ("path-number", vec![with(report("a", 5), &json!({"path": 5}))]),
        ("no-object", vec![report("a", 5), json!(5)]),
        ("null", vec![report("a", 5), Value::Null]),
        ("process-reserved", vec![of("constructor", "a", 5)]),
        ("tree-reserved", vec![report("toString/a", 5)]),
        ("flat-reserved", vec![report("__proto__", 5), report("a", 6)]),
        (
            "presence",
            vec![
                with(report("a", 5), &json!({"_presence": 1})),
                with(report("b", 5), &json!({"_presence": 2})),
            ],
        ),
        ("presence-three", vec![with(report("a", 5), &json!({"_presence": 3}))]),
        ("presence-text", vec![with(report("a", 5), &json!({"_presence": "1"}))]),
        ("presence-mixed", vec![with(report("a", 5), &json!({"_presence": 1})), report("a", 5)]),
        (
            "presence-leaf-and-tree",
            vec![
                with(report("t/a", 5), &json!({"_presence": 1})),
                report("t/a/b", 6),
                report("t/a/c", 7),
            ],
        ),
        (
            "presence-fake-there",
            vec![
                with(report("t/a", 5), &json!({"_presence": 1})),
                report("t/a/b", 6),
                report("t/a/(fake child)/x", 7),
            ],
        ),
    ]
}

pub(crate) fn odd_amounts() -> Vec<Page> {
    let odd = |name, amount: Value| -> Page {
        let flat = with(report("f", 1), &json!({"amount": amount.clone()}));
        let kid = with(report("t/a", 1), &json!({"amount": amount.clone()}));
        let heap = with(report("explicit/a", 1), &json!({"amount": amount.clone()}));
        let resident = with(report("resident", 1), &json!({"amount": amount}));
        (
            name,
            vec![
                flat,
                kid,
                heap,
                resident,
                report("t/b", 3),
                report("t/c", MB),
                report("explicit/b", 7),
                report("heap-allocated", 20),
            ],
        )
    };
    vec![
        odd("amount-float", json!(5.5)),
        odd("amount-small-float", json!(-0.0004)),
        odd("amount-max", json!(i64::MAX)),
        odd("amount-min", json!(i64::MIN)),
        odd("amount-beyond", json!(u64::MAX)),
        odd("amount-huge", json!(1e300)),
        odd("amount-text", json!("5")),
        odd("amount-text-huge", json!("123456789012345678901234567890.1234567")),
        odd("amount-text-words", json!("five")),
        odd("amount-text-hexadecimal", json!("0x1F")),
        odd("amount-text-empty", json!("")),
        odd("amount-true", json!(true)),
        odd("amount-array", json!([7])),
        odd("amount-array-nested", json!([1, [2, null], "x"])),
        odd("amount-object", json!({"a": 1})),
        (
            "amount-missing",
            vec![
                with(report("f", 1), &json!({"amount": null})),
                with(report("t/a", 1), &json!({"amount": null})),
                report("t/b", 3),
            ],
        ),
        (
            "amount-texts",
            ["5", "10", "9", "-3", "abc"]
                .iter()
                .enumerate()
                .map(|(i, text)| with(report(&format!("t/{i}"), 1), &json!({"amount": text})))
                .collect(),
        ),
        (
            "amount-beyond-doubles",
            (0..3).map(|i| report(&format!("t/{i}"), (1_i64 << 53) + i)).collect(),
        ),
        (
            "amount-not-numbers",
            (0..40)
                .map(|i| {
                    with(
                        report(&format!("t/x{}", i * 7 % 40), i % 5),
                        &if i % 3 == 0 { json!({"amount": "x"}) } else { json!({}) },
                    )
                })
                .collect(),
        ),
        (
            "amount-rounding",
            [0.005, 0.015, 0.125, 1.005, 2.675, 9.995, 999.995, -0.005, -1.005]
                .iter()
                .enumerate()
                .map(|(i, mb)| report(&format!("f{i}"), mb * 1_048_576.0))
                .collect(),
        ),
    ]
}
