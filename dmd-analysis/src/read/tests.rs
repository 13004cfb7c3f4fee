//! Reading good and bad dumps.

use std::io::{Read, Write};

use super::{MOST_FRAMES, Mode, ReadError, WrongKind, cut_stacks_note, read, read_slice};

const INVOCATION: &str = r#""version":5,"invocation":{"dmdEnvVar":null,"mode":"dark-matter"}"#;
const TABLES: &str = r##""traceTable":{"A":["B"]},"frameTable":{"B":"#00: main (main.rs:1)"}"##;

fn dump_with(blocks: &str) -> String {
    format!(r#"{{{INVOCATION},"blockList":[{blocks}],{TABLES}}}"#)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_block_has_what_the_file_says() {
    let text = dump_with(
        r#"{"req":100,"slop":12,"alloc":"A","reps":["A","A"],"num":3,"thread":7,"later":[{}]},{"req":0}"#,
    );
    let dump = read_slice(text.as_bytes()).unwrap();
    let [first, second] = [0, 1].map(|block| dump.blocks.at(block));
    assert_eq!(dump.blocks.len(), 2);
    assert_eq!(
        (first.req, first.slop, first.usable(), first.num, first.kind.thread),
        (100, 12, 112, 3, Some(7))
    );
    assert_eq!(dump.reports(&first).unwrap().len(), 2);
    assert_eq!(
        &*dump.frames[dump.trace(first.kind.alloc.unwrap())[0].index()].text,
        "#00: main (main.rs:1)"
    );
    assert_eq!(
        (second.usable(), second.num, second.kind.alloc, dump.reports(&second)),
        (0, 1, None, None)
    );
    assert_eq!(dump.notes, [""; 0]);
}

#[test]
fn the_extension_is_read_whatever_the_order_of_fields() {
    let text = format!(
        r##"{{"frameTable":{{"B":"#00: main","E":"#00: Index.words","F":"#00: explicit/index"}},
        "traceTable":{{"A":["B"],"R":["E","F"]}},"blockList":[{{"req":1,"alloc":"A","reps":["R"]}}],
        "memreport":{{"version":1,"needs":[],"program":"/p","pid":3,"heapAllocated":9,"bornDuring":{{"blocks":2,"bytes":64}},
          "modules":[{{"path":"/p","buildId":null,"base":"7f00"}}],"threads":[{{"id":0,"tid":3,"name":"main"}}],
          "reports":{{"R":{{"path":"explicit/index","type":"Index","field":"words","file":"src/main.rs","line":12}}}},
          "wrong":[{{"is":"partial","addr":"1f0","claimed":64,"rep":"R","num":2,"usable":128,"req":120,"alloc":"A"}},
                   {{"is":"from the future","addr":"0","claimed":1,"rep":"R","num":1}}]}},{INVOCATION}}}"##
    );
    let dump = read_slice(text.as_bytes()).unwrap();
    let extension = dump.extension.as_ref().unwrap();
    assert_eq!(extension.heap_allocated, Some(9));
    assert_eq!((extension.allocated_during.blocks, extension.allocated_during.bytes), (2, 64));
    assert_eq!(extension.threads[0].name.as_deref(), Some("main"));
    let reporter = dump.reports(&dump.blocks.at(0)).unwrap()[0];
    assert_eq!(extension.reports[&reporter].field.as_deref(), Some("words"));
    let kinds: Vec<WrongKind> = extension.wrong.iter().map(|wrong| wrong.kind).collect();
    assert_eq!(kinds, [WrongKind::Partial, WrongKind::Other]);
    assert_eq!(
        (extension.wrong[0].reporter, extension.wrong[0].alloc),
        (Some(reporter), dump.blocks.at(0).kind.alloc)
    );
}

#[test]
fn of_a_deep_stack_the_innermost_frames_are_read() {
    let deep = |count: usize| {
        let outer = r#","B""#.repeat(count);
        let tables = TABLES.replace(r#"["B"]"#, &format!(r#"["I"{outer}],"Q":["I"{outer}]"#));
        let tables = tables.replace(r#"{"B":"#, r##"{"I":"#00: inner (main.rs:2)","B":"##);
        let text = format!(r#"{{{INVOCATION},"blockList":[{{"req":1,"alloc":"A"}}],{tables}}}"#);
        read_slice(text.as_bytes()).unwrap()
    };
    assert_eq!(deep(MOST_FRAMES - 1).notes, [""; 0]);
    let dump = deep(MOST_FRAMES);
    let note = "2 stacks have more than 1024 frames; their outermost frames are left out";
    assert_eq!(dump.notes, [note]);
    let trace = dump.trace(dump.blocks.at(0).kind.alloc.unwrap());
    assert_eq!(trace.len(), MOST_FRAMES);
    assert!(dump.frames[trace[0].index()].text.contains("inner"));
    assert_eq!(
        cut_stacks_note(1).unwrap(),
        "1 stack has more than 1024 frames; its outermost frames are left out"
    );
}

#[test]
fn words_of_scan_dumps_are_numbers() {
    let text = format!(
        r#"{{"version":5,"invocation":{{"dmdEnvVar":"--mode=scan","mode":"scan"}},
        "blockList":[{{"req":16,"addr":"7fff0010","contents":["0","7fff0010"]}},{{"req":4,"addr":"7fff0020"}}],{TABLES}}}"#
    );
    let dump = read_slice(text.as_bytes()).unwrap();
    assert_eq!(dump.invocation.mode, Mode::Scan);
    assert_eq!(dump.blocks.at(1).addr.map(u64::from), Some(0x7fff_0020));
    let contents = dump.contents_of(0).expect("it has words");
    assert_eq!(dump.words(&contents, &mut Vec::new()), [0, 0x7fff_0010]);
}

#[test]
fn a_dump_has_the_same_notes_each_time_it_is_read() {
    let reports: Vec<String> =
        ('P'..='Z').map(|key| format!(r#""{key}":{{"path":"a"}}"#)).collect();
    let text = dump_with(r#"{"req":1,"alloc":"A"}"#).replacen(
        '{',
        &format!(
            r#"{{"memreport":{{"version":1,"needs":[],"reports":{{{}}}}},"#,
            reports.join(",")
        ),
        1,
    );
    let dump = read_slice(text.as_bytes()).unwrap();
    let note = "11 stacks named but not in traceTable (the first is P)";
    assert!(dump.notes[0].starts_with(note), "{:?}", dump.notes);
}

#[test]
fn what_a_dump_lacks_is_said_and_the_rest_is_read() {
    let text = dump_with(r#"{"req":1,"alloc":"Q"},{"req":2,"alloc":"A"}"#)
        .replace(r#"["B"]"#, r#"["B","Z"]"#);
    let dump = read_slice(text.as_bytes()).unwrap();
    assert_eq!(
        dump.notes,
        [
            "1 stack named but not in traceTable (the first is Q): the dump is damaged or was written with a fault",
            "1 frame named but not in frameTable (the first is Z): the dump is damaged or was written with a fault",
        ]
    );
    let text_of = |block: usize, frame: usize| {
        let trace = dump.trace(dump.blocks.at(block).kind.alloc.unwrap());
        dump.frames[trace[frame].index()].text.to_string()
    };
    assert_eq!(text_of(0, 0), "#00: (stack Q is missing from the dump)");
    assert_eq!(text_of(1, 0), "#00: main (main.rs:1)");
    assert_eq!(text_of(1, 1), "#00: (frame Z is missing from the dump)");
}

#[test]
fn a_bad_dump_is_refused_with_the_thing_and_the_remedy() {
    let whole = dump_with(r#"{"req":1}"#);
    let table = [
        (
            whole[..whole.len() - 1].to_owned(),
            "dump that ends in the middle, at line 1: the program stopped while writing it, or the copy is cut",
        ),
        (String::new(), "the dump is empty; was it read while it was being written?"),
        (
            "\0".repeat(9),
            "not a DMD dump: it begins with zeros. It was not written to its end, or the copy is damaged: take or copy it again",
        ),
        (whole.replace("\"version\":5", "\"version\":4"), "DMD dump of version 4; only 5 is known"),
        (whole.replace("\"version\":5,", ""), "not a DMD dump: it has no `version`"),
        (
            whole.replace("dark-matter", "dark"),
            "DMD dump of mode `dark`; only live, dark-matter, cumulative and scan are known",
        ),
        (whole.replace("blockList", "blocks"), "not a DMD dump: it has no `blockList`"),
        (
            dump_with(r#"{"req":1},{"slop":1}"#),
            "block 1 of blockList has no `req` (its requested size): the writer of this dump is at fault",
        ),
        (
            dump_with(r#"{"req":1,"addr":"0x10"}"#),
            "block 0 of blockList holds `0x10` where a hexadecimal address should be",
        ),
        (
            whole.replace("{\"version\"", r#"{"memreport":{"version":2},"version""#),
            "dump with a memreport extension of version 2; only 1 is known: use a newer about-memory",
        ),
        (
            whole.replace(
                "{\"version\"",
                r#"{"memreport":{"version":1,"needs":["zebra"]},"version""#,
            ),
            "dump that only a reader knowing `zebra` understands: use a newer about-memory",
        ),
        (
            "[1, 2]".to_owned(),
            "not a DMD dump: invalid type: sequence, expected an object with the fields of a DMD dump at line 1 column 0",
        ),
        (
            dump_with(r#"{"req":-1}"#),
            "not a DMD dump: invalid value: integer `-1`, expected u64 at line 1 column 88",
        ),
        ("{".repeat(100_000), "not a DMD dump: key must be a string at line 1 column 2"),
    ];
    for (text, expected) in table {
        let error = read_slice(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_error_has_the_cause_beneath() {
    let cause = |bytes: &[u8]| {
        let error = read_slice(bytes).unwrap_err();
        std::error::Error::source(&error).map(ToString::to_string)
    };
    assert_eq!(cause(b"{x").unwrap(), "key must be a string at line 1 column 2");
    assert!(cause(&gzip(b"{}")[..12]).is_some());
    let version = dump_with(r#"{"req":1}"#).replace(r#""version":5"#, r#""version":6"#);
    assert_eq!(cause(version.as_bytes()), None);
}

#[test]
fn of_a_file_that_is_no_object_only_the_beginning_is_read() {
    let mut rest = std::io::repeat(b'[').take(10 << 20);
    let error = read(&mut rest, 1 << 30).unwrap_err();
    assert!(matches!(error, ReadError::Json(_)), "{error:?}");
    assert!(rest.limit() > 9 << 20, "{} bytes are left", rest.limit());
}

#[test]
fn gzip_is_known_by_its_first_bytes_and_limited() {
    let text = dump_with(r#"{"req":1}"#);
    let zipped = gzip(text.as_bytes());
    assert_eq!(read(zipped.as_slice(), 1 << 20).unwrap().blocks.len(), 1);

    let cut = read(&zipped[..zipped.len() - 12], 1 << 20).unwrap_err();
    assert!(matches!(cut, ReadError::Gzip(_)), "{cut}");

    let bomb = gzip(&[b' '; 1 << 20]);
    let error = read(bomb.as_slice(), 1 << 16).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dump of more than 65536 bytes once unpacked: check that it is one, or raise the limit"
    );

    let zeros = gzip(&[0; 1 << 20]);
    assert!(
        matches!(read(zeros.as_slice(), 1 << 30).unwrap_err(), ReadError::Missing("version")),
        "not even unpacked"
    );
}
