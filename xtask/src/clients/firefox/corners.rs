//! Corner cases written by hand, one for each rule of the page.

mod odd;
mod pages;
mod pairs;
mod texts;

use super::cases::Case;
use crate::generate::reports as shapes;
use serde_json::Value;

const MB: i64 = 1 << 20;

/// Returns all corner cases.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, reports) in all_pages() {
        cases.push(Case::of(name, &reports));
        cases.push(Case::of(name, &reports).verbose());
    }
    cases.extend(filters());
    for (name, first, second) in pairs::diffs() {
        cases.push(Case::diff(name, &first, &second));
        cases.push(Case::diff(name, &second, &first).verbose());
    }
    cases.extend(texts::texts());
    cases
}

/// Returns a report of bytes in process `P`; a path below `explicit` is on the heap.
fn report(path: &str, amount: impl Into<Value>) -> Value {
    of("P", path, amount)
}

fn of(process: &str, path: &str, amount: impl Into<Value>) -> Value {
    let kind = if path.starts_with("explicit/") { 1 } else { 2 };
    let mut report = shapes::report(process, path, kind, 0, 0);
    report["amount"] = amount.into();
    report
}

/// Replaces fields of a report; `null` removes a field.
fn with(mut report: Value, fields: &Value) -> Value {
    let (Some(report_fields), Some(fields)) = (report.as_object_mut(), fields.as_object()) else {
        return report;
    };
    for (name, value) in fields {
        if value.is_null() {
            report_fields.remove(name);
        } else {
            report_fields.insert(name.clone(), value.clone());
        }
    }
    report
}

/// A name, and the reports of one file.
type Page = (&'static str, Vec<Value>);

fn all_pages() -> Vec<Page> {
    let usual =
        [pages::sums(), pages::trees(), pages::invalid(), pages::names(), pages::processes()];
    [usual.concat(), odd::units(), odd::refused(), odd::odd_amounts()].concat()
}

fn filters() -> Vec<Case> {
    let reports = [
        report("explicit/js/a", 30 * MB),
        report("explicit/js/b", 2),
        report("explicit/gfx/http:\\\\x", -5 * MB),
        report("heap-allocated", 60 * MB),
        report("resident", 90 * MB),
        report("", 5),
        of("Q", "other/js/c", -7),
        of("Q", "resident", 100 * MB),
        of("Main Process", "z", 1),
    ];
    let texts = [
        "js",
        "JS",
        "explicit",
        "explicit/",
        "heap-allocated",
        "e",
        "http://",
        "\\\\",
        "none",
        "resident",
        " ",
        ".",
    ];
    let expressions = [
        "^explicit",
        "js|gfx",
        "[",
        "(",
        "^$",
        "",
        "a{",
        r"\/js\/",
        "(?=js)",
        r"(j)s\/.*|\1",
        "E",
        "^.{0,8}$",
        r"\u{6a}",
        "[^]",
    ];
    let mut cases: Vec<Case> =
        texts.iter().map(|text| Case::of("filter", &reports).filtered(text)).collect();
    cases.extend(
        expressions
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| Case::of("filter", &reports).matching(text)),
    );
    cases.push(Case::of("filter", &reports).filtered("js").verbose());
    let mut second = reports.clone();
    second[0]["amount"] = 5.into();
    cases.push(Case::diff("filter-diff", &reports, &second).filtered("js"));
    cases.push(Case::diff("filter-diff", &reports, &second[1..]).matching("^e"));
    cases
}
