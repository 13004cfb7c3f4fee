//! Files with content other than reports.

#![expect(clippy::too_many_lines, reason = "tables are as long as they are")]

use super::super::cases::Case;

/// Returns files with content other than reports.
pub(crate) fn texts() -> Vec<Case> {
    let reports =
        r#"[{"process":"P","path":"t/a","kind":2,"units":0,"amount":5,"description":"d"}]"#;
    let good = format!(r#"{{"version":1,"hasMozMallocUsableSize":true,"reports":{reports}}}"#);
    let number = |amount: &str| good.replace("\"amount\":5", &format!("\"amount\":{amount}"));
    let path = |path: &str| good.replace("t/a", path);
    let list: Vec<(&str, Vec<u8>)> = vec![
        ("text-good", good.clone().into()),
        ("text-mark", format!("\u{feff}{good}").into()),
        ("text-blanks", format!(" \t\r\n{good}\n \r\t").into()),
        ("text-trailing", format!("{good}x").into()),
        ("text-nothing", vec![]),
        ("text-null", "null".into()),
        ("text-array", format!("[{good}]").into()),
        ("text-number", "5".into()),
        ("text-cut", good.as_bytes()[..good.len() - 9].into()),
        ("version-missing", good.replace("\"version\":1,", "").into()),
        ("version-two", good.replace("\"version\":1", "\"version\":2").into()),
        ("version-float", good.replace("\"version\":1", "\"version\":1.0e0").into()),
        ("version-text", good.replace("\"version\":1", "\"version\":\"1\"").into()),
        ("version-later", good.replace("\"version\":1", "\"version\":2,\"version\":1").into()),
        ("usable-missing", good.replace("\"hasMozMallocUsableSize\":true,", "").into()),
        ("usable-null", good.replace("true", "null").into()),
        (
            "usable-false",
            good.replace("true", "false")
                .replace("t/a", "explicit/a")
                .replace("\"kind\":2", "\"kind\":1")
                .into(),
        ),
        ("usable-array", good.replace("true", "[]").into()),
        ("reports-missing", r#"{"version":1,"hasMozMallocUsableSize":true}"#.into()),
        ("reports-object", good.replace(reports, "{}").into()),
        (
            "reports-twice",
            good.replace(
                "\"reports\":",
                &format!("\"reports\":{},\"reports\":", reports.replace("t/a", "u")),
            )
            .into(),
        ),
        (
            "reports-first",
            format!(r#"{{"reports":{reports},"version":1,"hasMozMallocUsableSize":true}}"#).into(),
        ),
        ("crash", format!(r#"{{"memory_report":{good}}}"#).into()),
        (
            "crash-and-more",
            format!(
                r#"{{"reports":[],"version":7,"memory_report":{good},"version":9,"reports":[5]}}"#
            )
            .into(),
        ),
        ("crash-null", format!(r#"{{"memory_report":null,{}"#, &good[1..]).into()),
        ("crash-text", format!(r#"{{"memory_report":"x",{}"#, &good[1..]).into()),
        ("crash-in-crash", format!(r#"{{"memory_report":{{"memory_report":{good}}}}}"#).into()),
        ("comma", good.replace("}]", "},]").into()),
        ("comma-in-object", good.replace("\"d\"}", "\"d\",}").into()),
        ("comment", format!("{good}//").into()),
        ("single-quotes", good.replace('"', "'").into()),
        ("number-infinite", number("1e400").into()),
        ("number-tiny", number("1e-400").into()),
        ("number-negative-infinite", number("-1e400").into()),
        ("number-leading-zero", number("05").into()),
        ("number-plus", number("+5").into()),
        ("number-point", number("5.").into()),
        ("number-fraction", number("0.1234567890123456789012345678901234567890").into()),
        ("number-long", number(&"9".repeat(400)).into()),
        ("number-nan", number("NaN").into()),
        ("escapes", path(r"t/\u0041\u00e9\ud83d\ude00\n\t\b\f\r\/\\\u0000").into()),
        ("escape-halves", path(r"t/\ud83dx\ude00\ud83d\ud83d\ude00\ud83d\n").into()),
        ("escape-unknown", path(r"t/\x41").into()),
        ("escape-short", path(r"t/\u12").into()),
        ("line-break-in-string", path("t/a\nb").into()),
        ("tab-in-string", path("t/a\tb").into()),
        ("delete-in-string", path("t/a\u{7f}b").into()),
        ("no-utf8", [path("t/").split_at(60).0.as_bytes(), b""].concat()),
        (
            "bytes",
            good.replace("t/a", "t/@")
                .bytes()
                .flat_map(|b| {
                    if b == b'@' { b"\xff\xed\xa0\x80y\xf0\x9f\xc3\xa9".to_vec() } else { vec![b] }
                })
                .collect(),
        ),
        ("keys-escaped", good.replace("\"path\"", r#""p\u0061th""#).into()),
        ("keys-twice", good.replace("\"amount\":5", "\"amount\":5,\"amount\":7").into()),
        (
            "keys-more",
            good.replace(
                "\"amount\":5",
                r#""amount":5,"more":{"a":[1,{"b":null}],"c":""},"segments":7"#,
            )
            .into(),
        ),
        (
            "deep",
            good.replace(
                "\"version\":1",
                &format!("\"version\":1,\"x\":{}{}", "[".repeat(300), "]".repeat(300)),
            )
            .into(),
        ),
    ];
    let mut cases = Vec::new();
    for (name, text) in list {
        let case = Case { name: name.to_owned(), files: vec![text], ..Case::default() };
        cases.push(Case { name: format!("{name}-gz"), is_gzipped: true, ..case.clone() });
        cases.push(Case {
            name: format!("{name}-diff"),
            files: vec![case.files[0].clone(), good.replace('5', "6").into()],
            ..case.clone()
        });
        cases.push(case);
    }
    cases
}
