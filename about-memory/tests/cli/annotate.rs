//! Tests what `about-memory annotate` says of dumps that it cannot use.

use super::folder::Folder;

/// Returns the message about a dump.
#[track_caller]
fn refusal(dump: &str) -> String {
    let output = Folder::new().with("dump.json", dump).run(&["annotate", "dump.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).expect("it prints text")
}

#[test]
fn a_dump_that_cannot_be_used_is_named_with_the_remedy() {
    let dump = |mode: &str, ours: &str| {
        format!(
            r#"{{"version": 5, "invocation": {{"dmdEnvVar": null, "mode": "{mode}"}},
            "blockList": [{{"req": 700, "addr": "1000"}}], {ours}"traceTable": {{}}, "frameTable": {{}}}}"#
        )
    };
    let ours = r#""memreport": {"version": 1, "program": "/no/such/shop"},"#;
    for (dump, expected) in [
        (
            dump("scan", ""),
            "about-memory: dump.json: the dump does not name its program; take one by DMD\n",
        ),
        (
            dump("dark-matter", ours),
            "about-memory: dump.json: the dump does not say what points at what; take one with DMD=--mode=scan\n",
        ),
        (
            dump("scan", ours),
            "about-memory: /no/such/shop: no types are known, as it is gone, was built anew, or has no debug information; \
             build it with debug = true in its profile, and take a new dump (--symbols DIR finds it elsewhere)\n",
        ),
    ] {
        assert_eq!(refusal(&dump), expected);
    }
}
