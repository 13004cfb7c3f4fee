//! Tests of the reader: texts in, reports out.

use super::{
    Entry, Field, Header, Options, Own, OwnProcess, ReadError, Sink, SizeSource, Skipped, read,
};
use std::error::Error;
use std::io::{self, Read};

/// A sink that keeps each report as a line of text.
#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if entry.path == "bad" {
            return Err("it is bad".into());
        }
        let Entry { index, process, path, kind, units, amount, description, presence, segments } =
            entry;
        let mut line = format!("{index} {process}: {path:?} {kind} {units} {amount} {description}");
        if *presence != Field::Missing {
            line += &format!(", marked {presence}");
        }
        if let Some(segments) = segments {
            line += &format!(", {segments:?}");
        }
        self.0.push(line);
        Ok(())
    }
}

fn read_text(text: impl AsRef<[u8]>) -> Result<(Vec<String>, Header), ReadError> {
    let mut lines = Lines::default();
    let header = read(&mut text.as_ref(), Options::default(), &mut lines)?;
    Ok((lines.0, header))
}

/// Returns the text of a file with these reports.
fn file(reports: &str) -> String {
    format!("{{\"version\": 1, \"hasMozMallocUsableSize\": true, \"reports\": [{reports}]}}")
}

fn lines(reports: &str) -> Vec<String> {
    read_text(file(reports)).unwrap().0
}

#[test]
fn a_report_is_handed_on_as_the_file_has_it() {
    for (report, line) in [
        (
            r#"{"process": "P", "path": "a/b", "kind": 1, "units": 0, "amount": -7, "description": "d"}"#,
            r#"0 the string "P": "a/b" 1 0 -7 the string "d""#,
        ),
        (r#"{"path": ""}"#, r#"0 nothing: "" nothing nothing nothing nothing"#),
        (
            r#"{"path": "a", "amount": null, "kind": true}"#,
            r#"0 nothing: "a" true nothing null nothing"#,
        ),
        (
            r#"{"path": "a", "amount": 1.5e3, "units": 18446744073709551616}"#,
            r#"0 nothing: "a" nothing 18446744073709552000 1500 nothing"#,
        ),
        (
            r#"{"path": "a", "amount": 1e999, "kind": -0}"#,
            r#"0 nothing: "a" -0 nothing inf nothing"#,
        ),
        (
            r#"{"path": "a", "amount": [1, {}], "kind": {}}"#,
            r#"0 nothing: "a" an object or array nothing an object or array nothing"#,
        ),
        (r#"{"path": "a", "path": "b"}"#, r#"0 nothing: "b" nothing nothing nothing nothing"#),
        (
            r#"{"path": "a", "_presence": 2, "more": [[], {"x": {}}]}"#,
            r#"0 nothing: "a" nothing nothing nothing nothing, marked 2"#,
        ),
        (
            r#"{"path": "a\\b", "segments": ["a\\b"]}"#,
            r#"0 nothing: "a\\b" nothing nothing nothing nothing, ["a\\b"]"#,
        ),
        (
            r#"{"path": "a", "segments": ["a", 5]}"#,
            r#"0 nothing: "a" nothing nothing nothing nothing"#,
        ),
        (r#"{"path": "a", "segments": []}"#, r#"0 nothing: "a" nothing nothing nothing nothing"#),
    ] {
        assert_eq!(lines(report), [line], "{report}");
    }
}

#[test]
fn strings_are_what_javascript_makes_of_them() {
    for (written, path) in [
        (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r"\u0041\u00e9\u20AC", "Aé€"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ude00x", "\u{fffd}x"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        ("é😀\u{7f}", "é😀\u{7f}"),
    ] {
        let line = format!("0 nothing: {path:?} nothing nothing nothing nothing");
        assert_eq!(lines(&format!("{{\"path\": \"{written}\"}}")), [line], "{written}");
    }
    let broken = file("{\"path\": \"@\"}").into_bytes();
    let broken: Vec<u8> = broken
        .into_iter()
        .flat_map(|byte| if byte == b'@' { vec![0xff, b'x', 0xf0, 0x9f] } else { vec![byte] })
        .collect();
    assert!(read_text(broken).unwrap().0[0].contains("\"\u{fffd}x\u{fffd}\""));
}

#[test]
fn strings_of_any_length_and_place_are_found_whole() {
    // Quotes, escapes and chunk ends at every offset of a word.
    for length in 0..40 {
        let text = format!("{}\\n{}é", "x".repeat(length), "y".repeat(40 - length));
        let line = lines(&format!("{{\"path\": \"{text}\"}}")).remove(0);
        assert!(line.contains(&format!("{:?}", text.replace("\\n", "\n"))), "{line}");
    }
}

/// A reader that returns one byte at a time, with an interruption before each.
struct Trickle<'t>(&'t [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.0.read(&mut buffer[..1])
    }
}

#[test]
fn a_slow_reader_changes_nothing() {
    let text = file(
        r#"{"path": "\ud83d\ude00é", "amount": 12345678901234567890, "more": {"a": [true, false, null]}}, {"path": "b"}"#,
    );
    let mut slow = Lines::default();
    read(&mut Trickle(text.as_bytes(), false), Options::default(), &mut slow).unwrap();
    assert_eq!(slow.0, read_text(&text).unwrap().0);
}

#[test]
fn the_last_list_counts_wherever_the_rest_stands() {
    let list = |path: &str| format!("[{{\"path\": \"{path}\"}}]");
    let rest = "\"version\": 1, \"hasMozMallocUsableSize\": null";
    for (text, path) in [
        (format!("{{\"reports\": {}, {rest}}}", list("a")), "a"),
        (format!("{{\"reports\": {}, {rest}, \"reports\": {}}}", list("a"), list("b")), "b"),
        (
            format!(
                "{{\"memory_report\": {{{rest}, \"reports\": {}}}, \"reports\": {}}}",
                list("a"),
                list("b")
            ),
            "a",
        ),
        (
            format!(
                "{{\"reports\": {}, \"version\": 7, \"memory_report\": {{{rest}, \"reports\": {}}}}}",
                list("bad"),
                list("b")
            ),
            "b",
        ),
    ] {
        let (lines, header) = read_text(&text).unwrap();
        assert_eq!(
            lines,
            [format!("0 nothing: {path:?} nothing nothing nothing nothing")],
            "{text}"
        );
        assert_eq!((header.reports, header.usable_size), (1, Field::Null));
    }
}

#[test]
fn a_fault_of_the_file_comes_before_one_of_a_report() {
    let text = |version| {
        format!("{{\"reports\": [5], \"hasMozMallocUsableSize\": 1, \"version\": {version}}}")
    };
    assert!(matches!(read_text(text("2")), Err(ReadError::Version { .. })));
    assert!(matches!(read_text(text("1")), Err(ReadError::ReportIsNoObject { index: 0 })));
    assert!(matches!(read_text(text("1") + "x"), Err(ReadError::Json { .. })));
    let refused = read_text(file("{\"path\": \"bad\"}, {}")).unwrap_err();
    assert_eq!(refused.to_string(), "report 0 (`bad`)");
    assert_eq!(refused.source().unwrap().to_string(), "it is bad");
}

#[test]
fn what_we_add_is_understood_or_named() {
    let own = |own: &str| {
        read_text(file("").replacen('{', &format!("{{\"memreport\": {own}, "), 1)).unwrap().1.own
    };
    let Own {
        process,
        moment,
        time_ms,
        allocator,
        notes,
        is_anonymized,
        missed,
        reporters,
        sizes,
        skipped,
        events,
        unknown,
    } = own(
        r#"{"version": 1, "process": {"name": "server", "pid": 7, "startMs": 1700000000000}, "moment": "at exit",
            "timeMs": 1700000012345, "allocator": "jemalloc", "notes": ["busy"], "anonymized": true, "missed": [{"reporter": "explicit/a", "reason": "locked"}],
            "reporters": ["explicit/own"], "sizes": "layouts", "colour": 1,
            "events": [{"number": 3, "reason": "minimize", "slicesUs": [[1700000012000001, 1700000012000009]]}],
            "skipped": [{"owner": "O", "field": "f", "reason": "r", "file": "o.rs", "line": 3}, {"owner": "P"}]}"#,
    );
    let start_ms = Some(1_700_000_000_000);
    assert_eq!(process, Some(OwnProcess { name: "server".into(), pid: Some(7), start_ms }));
    assert_eq!((time_ms, allocator.as_deref()), (Some(1_700_000_012_345), Some("jemalloc")));
    assert_eq!(moment.as_deref(), Some("at exit"));
    assert!(is_anonymized);
    assert_eq!(
        (notes, sizes, unknown),
        (vec!["busy".to_owned()], Some(SizeSource::Layout), vec!["colour".to_owned()])
    );
    let of = super::OwnMissed { reporter: "explicit/a".into(), reason: "locked".into() };
    assert_eq!(missed, [of]);
    assert_eq!(reporters, ["explicit/own"]);
    let event = super::OwnEvent {
        number: 3,
        reason: "minimize".into(),
        nonincremental_reason: None,
        slices_us: vec![[1_700_000_012_000_001, 1_700_000_012_000_009]],
    };
    assert_eq!(events, [event]);
    let o = Skipped {
        owner: "O".into(),
        field: "f".into(),
        reason: "r".into(),
        file: "o.rs".into(),
        line: 3,
    };
    assert_eq!(skipped, [o, Skipped { owner: "P".into(), ..Skipped::default() }]);
    assert_eq!(
        own("{\"version\": 2, \"sizes\": \"guessed\"}").unknown,
        ["version 2", "sizes \"guessed\""]
    );
    assert_eq!(own("5").unknown.len(), 1);
    assert_eq!(own("{\"notes\": 5}").unknown.len(), 1);
}

#[test]
fn every_limit_is_named_with_the_place() {
    let error = |reports: &str| read_text(file(reports)).unwrap_err().to_string();
    let list = |open: &str, close: &str, levels: usize| {
        format!("{{\"path\": {}{}}}", open.repeat(levels), close.repeat(levels))
    };
    assert!(!error(&list("[", "]", 99)).contains("levels"), "a path of another type is refused");
    assert!(error(&list("[", "]", 101)).starts_with("more than 100 levels of nesting at byte "));
    assert!(error(&list("{\"a\":[", "]}", 51)).starts_with("more than 100 levels of nesting"));
    // A member that is skipped.
    let skipped = |levels: usize| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        read_text(file(r#"{"path": "a"}"#).replacen('{', &format!("{{\"x\": {value},"), 1))
    };
    assert!(skipped(512).is_ok());
    let deep = skipped(513).unwrap_err().to_string();
    assert!(deep.starts_with("more than 512 levels of nesting at byte "), "{deep}");
    let large = error(&format!("{{\"path\": [{}0]}}", "0,".repeat(40_000)));
    assert!(large.starts_with("a value of more than 65536 bytes at byte "), "{large}");
    assert!(large.ends_with("only the list of reports may be so long"), "{large}");
    let long = error(&format!("{{\"path\": \"{}\"}}", "x".repeat((16 << 20) + 1)));
    assert!(long.starts_with("a string or number of more than 16777216 bytes at byte "), "{long}");
}

#[test]
fn the_first_bytes_tell_the_encoding() {
    let text = file(r#"{"path": "a"}"#);
    let marked = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
    let outcome = |bytes: &[u8], utf8| {
        let options = Options { utf8, ..Options::default() };
        let mut lines = Lines::default();
        match super::read_text(&mut Trickle(bytes, false), options, &mut lines) {
            Ok(_) => format!("{} report", lines.0.len()),
            Err(ReadError::Empty) => "empty".to_owned(),
            Err(ReadError::Utf16) => "UTF-16".to_owned(),
            Err(ReadError::Json { offset, .. }) => format!("fault at {offset}"),
            Err(other) => panic!("{other}"),
        }
    };
    let table: [(&[u8], bool, &str); 9] = [
        (text.as_bytes(), false, "1 report"),
        (text.as_bytes(), true, "1 report"),
        (&marked, true, "1 report"),
        // In a gzipped file, Firefox takes the mark for three characters.
        (&marked, false, "fault at 0"),
        (b"\xEF\xBB", true, "fault at 0"),
        (b"\xFE\xFF\x00{", true, "UTF-16"),
        (b"\xFF\xFE{\x00", false, "UTF-16"),
        (b"", true, "empty"),
        (b" ", true, "fault at 1"),
    ];
    for (bytes, utf8, expected) in table {
        assert_eq!(outcome(bytes, utf8), expected, "{:?}, {utf8}", bytes.get(..4));
    }
}

#[test]
fn a_limit_is_reached_by_as_much_and_exceeded_by_more() {
    let text = file(r#"{"path": "a"}"#);
    let of_size = |bytes| {
        let options = Options { bytes, ..Options::default() };
        read(&mut text.as_bytes(), options, &mut Lines::default())
    };
    let size = text.len() as u64;
    assert!(of_size(size).is_ok());
    for less in [1, 2, size - 3] {
        let limit = size - less;
        assert!(
            matches!(of_size(limit), Err(ReadError::TooLarge { limit: found }) if found == limit)
        );
    }
    // The last value in a list begins at the limit for the list, or after it.
    let with_list = |blanks: usize| {
        read_text(file(&format!(r#"{{"path": "a", "description": [{}7]}}"#, " ".repeat(blanks))))
    };
    let most = (64 << 10) - 1;
    assert!(with_list(most).is_ok());
    assert!(matches!(with_list(most + 100), Err(ReadError::LargeValue { limit: 65_536, .. })));
}
