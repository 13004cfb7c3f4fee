//! Tests of differences: processes of isolated sites, and fields of several types.

use super::*;
use crate::report::filter::Filter;

/// Returns a file's reports: `process|path|amount`, a line each.
fn side(reports: &str) -> Side {
    let mut side = Side::default();
    for line in reports.lines() {
        let [process, path, amount] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let entry = Entry {
            index: 0,
            process: Field::Text(process.into()),
            path,
            kind: Field::Number(1.0),
            units: Field::Number(0.0),
            amount: Field::Number(amount.parse().unwrap()),
            description: Field::Text("A.".into()),
            presence: Field::Missing,
            segments: None,
        };
        side.report(&entry).unwrap();
    }
    side
}

/// Keeps what is passed to it.
#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn restart(&mut self) {}

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (Field::Text(process), Field::Number(amount)) = (&entry.process, &entry.amount) else {
            return Err("a report without process or amount".into());
        };
        self.0.push(format!("{process}|{}|{amount}", entry.path));
        Ok(())
    }
}

fn compared(first: &str, second: &str) -> Vec<String> {
    let header = Header::default();
    let mut lines = Lines::default();
    compare((side(first), &header), (side(second), &header), &mut lines).unwrap();
    lines.0
}

#[test]
fn isolated_sites_are_web_processes_if_one_file_has_none() {
    let isolated = "webIsolated=https://a.example (pid 1)|explicit/a|5
webIsolated=https://b.example (pid 2)|explicit/a|6
main (pid 3)|explicit/a|1";
    let together = "web (pid 4)|explicit/a|20\nmain (pid 3)|explicit/a|2";
    let expected = ["web (pid NNN)|explicit/a|9", "web (pid NNN)|explicit/a|0"];
    let changes = compared(isolated, together);
    assert_eq!(changes[..2], expected, "{changes:?}");
    assert_eq!(changes.len(), 3, "{changes:?}");
    // If both have some, sites are compared one by one.
    let grown = isolated.replace("a|6", "a|8");
    let changes = compared(isolated, &grown);
    assert_eq!(changes.len(), 1);
    assert!(changes[0].starts_with("webIsolated=https://b.example"), "{changes:?}");
}

/// Returns the changes of two files as `process|path|before|after`.
fn changed(first: &str, second: &str) -> Vec<String> {
    let header = Header::default();
    let changes =
        changes::changes((side(first), &header), (side(second), &header), &Filter::All).unwrap();
    let line = |change: &Change| {
        let Change { process, path, before, after, .. } = change;
        format!("{process}|{path}|{}|{}", before.number(), after.number())
    };
    changes.iter().map(line).collect()
}

#[test]
fn memory_that_no_report_names_is_one_of_the_changes() {
    let first = "a|heap-allocated|100\na|explicit/x|60\nb|heap-allocated|9\nb|explicit/y|9";
    let second = "a|heap-allocated|150\na|explicit/x|65\nb|heap-allocated|9\nb|explicit/y|9";
    let expected =
        ["a|heap-allocated|100|150", "a|explicit/heap-unclassified|40|85", "a|explicit/x|60|65"];
    assert_eq!(changed(first, second), expected);
    // It is not computed where a file reports it, or has no reports to compute it from.
    let reported = second.replace("a|explicit/x|65", "a|explicit/heap-unclassified|7");
    let expected = ["a|explicit/x|60|0", "a|heap-allocated|100|150"];
    let found = changed(first, &reported);
    assert_eq!(found[..2], expected);
    assert_eq!(found[2], "a|explicit/heap-unclassified|0|7");
    assert_eq!(changed("a|heap-allocated|1", "a|heap-allocated|2"), ["a|heap-allocated|1|2"]);
}

#[test]
fn changes_are_of_the_same_comparison_as_the_trees() {
    let isolated = "webIsolated=https://a.example (pid 1)|explicit/a|5";
    let together = "web (pid 4)|explicit/a|20";
    assert_eq!(changed(isolated, together), ["web (pid NNN)|explicit/a|5|20"]);

    let header = Header::default();
    let unlike = Header { usable_size: Field::Bool(true), ..Header::default() };
    let refused = changes::changes((side(""), &header), (side(""), &unlike), &Filter::All);
    assert!(refused.unwrap_err().to_string().contains("hasMozMallocUsableSize"));

    let mut other_kind = side("p|explicit/a|1");
    other_kind.reports[0].kind = Field::Number(0.0);
    let first = (side("p|explicit/a|1"), &header);
    let refused = changes::changes(first, (other_kind, &header), &Filter::All);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("p: explicit/a: its kind is 0"), "{refused}");

    // Neither tree nor table has a path without a kind that Firefox knows.
    let [first, second] = ["p|explicit/a|1", "p|explicit/a|2"].map(|text| {
        let mut side = side(text);
        side.reports[0].kind = Field::Number(2.0);
        side
    });
    let refused = changes::changes((first, &header), (second, &header), &Filter::All);
    assert!(refused.unwrap_err().to_string().starts_with("its kind is 2"));
}

#[test]
fn fields_are_compared_as_in_javascript() {
    let text = |text: &'static str| Field::Text(text.into());
    let object = Field::Composite("{}".into());
    for (a, b, equal) in [
        (Field::Null, Field::Null, true),
        (Field::Null, Field::Number(0.0), false),
        (Field::Null, Field::Bool(false), false),
        (Field::Missing, text(""), false),
        (Field::Number(1.0), Field::Bool(true), true),
        (Field::Number(1.0), text("1"), true),
        (Field::Number(1.0), text("2"), false),
        (text("1"), text("1.0"), false),
        (text("1"), text("1"), true),
        (object.clone(), object.clone(), false),
        (object.clone(), text("{}"), true),
    ] {
        assert_eq!(equal_loosely(&a, &b), equal, "{a:?} {b:?}");
        assert_eq!(equal_loosely(&b, &a), equal, "{b:?} {a:?}");
    }
}
