//! Tests that any bytes give a text or an error, never a panic. `PROPTEST_CASES` sets the number of
//! cases.

use about_memory::input::open::{NamedBytes, open_bytes};
use about_memory::render::show::{descriptions, json, text};
use about_memory::report::filter::Filter;
use about_memory::report::page::Page;
use about_memory::report::tree::Settings;
use memreport::snapshot::read::Options;
use proptest::prelude::*;

/// Shows the bytes in every way there is.
fn show(bytes: &[u8]) {
    for settings in [Settings::default(), Settings { is_verbose: true, ..Settings::default() }] {
        let options = Options { bytes: 1 << 24, ..Options::default() };
        let Ok(opened) =
            open_bytes(NamedBytes { name: "fuzz", bytes }, options, Filter::text(""), &settings)
        else {
            return;
        };
        let files = [opened.file];
        let page = Page::new(&files, &settings);
        let mut out = Vec::new();
        text::write(&page, text::Medium { is_coloured: true, is_terminal: true }, &mut out)
            .expect("a vector takes all");
        descriptions::write(&page, &mut out).expect("a vector takes all");
        let mut out = Vec::new();
        json::write(&page, &[], &mut out).expect("a vector takes all");
        serde_json::from_slice::<serde_json::Value>(&out).expect("what is written is JSON");
    }
}

/// Fields of reports, right and wrong ones.
fn field() -> impl Strategy<Value = String> {
    let amount = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has no infinity", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        Just("1e999".to_owned()),
        Just("null".to_owned()),
        Just("[1, {}]".to_owned()),
        "\"[0-9x. -]{0,8}\"",
    ];
    let path =
        prop_oneof!["(explicit|t|heap-allocated|resident|a)(/[ab\\\\]{0,2}){0,5}", "\\PC{0,10}"];
    prop_oneof![
        4 => amount.prop_map(|amount| format!("\"amount\": {amount}")),
        6 => path.prop_map(|path| format!("\"path\": {}", serde_json::Value::from(path))),
        1 => "(P|Main Process|constructor|)".prop_map(|process| format!("\"process\": \"{process}\"")),
        2 => (0..4).prop_map(|units| format!("\"units\": {units}")),
        2 => (0..3).prop_map(|kind| format!("\"kind\": {kind}")),
        1 => (0..4).prop_map(|presence| format!("\"_presence\": {presence}")),
        1 => prop::collection::vec("[a/\\\\]{0,3}", 0..4)
            .prop_map(|segments| format!("\"segments\": {}", serde_json::Value::from(segments))),
    ]
}

fn report() -> impl Strategy<Value = String> {
    let usual = "\"path\": \"t/a\", \"units\": 0, \"kind\": 1, \"amount\": 7";
    prop::collection::vec(field(), 0..7)
        .prop_map(move |fields| format!("{{{usual}, {}}}", fields.join(", ")).replace(", }", "}"))
}

fn file() -> impl Strategy<Value = String> {
    prop::collection::vec(report(), 0..30).prop_map(|reports| {
        format!(
            "{{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [{}]}}",
            reports.join(",\n")
        )
    })
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        show(&bytes);
    }

    #[test]
    fn any_reports(file in file()) {
        show(file.as_bytes());
    }

    #[test]
    fn damaged_reports(file in file(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = file.into_bytes();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        show(&bytes);
    }

    #[test]
    fn cut_reports(file in file(), place in any::<prop::sample::Index>()) {
        show(&file.as_bytes()[..place.index(file.len())]);
    }
}
