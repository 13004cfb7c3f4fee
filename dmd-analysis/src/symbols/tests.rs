//! Stacks of this very test program, looked up from its file as if it had gone.

mod merged_code;

use std::ffi::c_void;
use std::io;
use std::path::PathBuf;

use super::module::elf::Elf;
use super::{Options, Symboliser};
use crate::read::{Dump, read_slice};

#[inline(never)]
fn outer() -> Vec<usize> {
    let mut addresses = middle();
    // Keeps the call above from being the last thing done, so that this frame is there.
    addresses.retain(|&address| address != 0);
    addresses
}

#[inline(always)]
fn middle() -> Vec<usize> {
    let mut addresses = Vec::new();
    backtrace::trace(|frame| {
        addresses.push(frame.ip().addr());
        true
    });
    addresses
}

fn program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

fn build_id() -> Option<String> {
    Elf::parse(&std::fs::read(program()).unwrap()).unwrap().build_id()
}

/// Returns the addresses of the test program in memory, without other mappings of its file.
fn mapped() -> std::ops::Range<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own: Vec<&str> = maps.lines().filter(|line| line.ends_with(&program())).collect();
    let code = own.iter().position(|line| line.contains(" r-xp ")).unwrap();
    let is_start = |line: &&str| line.contains(" 00000000 ");
    let first = own[..=code].iter().rposition(is_start).unwrap();
    let range = |line: &str| {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split(' ').next().unwrap();
        usize::from_str_radix(start, 16).unwrap()..usize::from_str_radix(end, 16).unwrap()
    };
    // Between two segments may be pages of neither.
    let further = own[first + 1..].iter().take_while(|line| !is_start(line));
    let last = further.last().unwrap();
    range(own[first]).start..range(last).end
}

/// Returns a dump of one block whose stack has these addresses.
fn dump(path: &str, build_id: Option<&str>, offsets: &[usize]) -> Dump {
    let id = build_id.map_or("null".to_owned(), |id| format!("\"{id}\""));
    let keys: Vec<String> = (0..offsets.len()).map(|at| format!("\"f{at}\"")).collect();
    let frames: Vec<String> = offsets
        .iter()
        .enumerate()
        .map(|(at, offset)| format!(r##""f{at}":"#00: ???[{path} +0x{offset:x}]""##))
        .collect();
    let text = format!(
        r#"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"live"}},
        "memreport":{{"version":1,"modules":[{{"path":"{path}","buildId":{id},"base":"0"}}]}},
        "blockList":[{{"req":1,"alloc":"A"}}],"traceTable":{{"A":[{}]}},"frameTable":{{{}}}}}"#,
        keys.join(","),
        frames.join(",")
    );
    read_slice(text.as_bytes()).unwrap()
}

fn offsets(addresses: &[usize]) -> Vec<usize> {
    let mapped = mapped();
    addresses
        .iter()
        .filter(|address| mapped.contains(address))
        .map(|address| address - mapped.start)
        .collect()
}

#[test]
fn off_process_symbols_equal_those_in_process() {
    let addresses = outer();
    let mut expected = Vec::new();
    let mapped = mapped();
    for &address in addresses.iter().filter(|address| mapped.contains(address)) {
        backtrace::resolve(std::ptr::without_provenance_mut::<c_void>(address), |symbol| {
            let name = symbol.name().map(|name| format!("{name:#}")).unwrap_or_default();
            let file = symbol.filename().map(|file| file.to_str().unwrap().to_owned());
            expected.push((name, file, symbol.lineno()));
        });
    }
    let mut dump = dump(&program(), build_id().as_deref(), &offsets(&addresses));
    let report = Symboliser::default().symbolicate(&mut dump);
    assert_eq!(report.found, report.addresses, "{:?}", report.notes);
    let found = dump.trace(dump.blocks.at(0).kind.alloc.unwrap()).iter().map(|frame| {
        let symbol = dump.frames[frame.index()].symbol.as_ref().unwrap();
        (symbol.function.to_string(), symbol.file.as_deref().map(str::to_owned), symbol.line)
    });
    let found: Vec<_> = found.collect();
    // With line tables alone, some names have their path on one side only.
    let places = |of: &[(String, Option<String>, Option<u32>)]| {
        of.iter().map(|(_, file, line)| (file.clone(), *line)).collect::<Vec<_>>()
    };
    assert_eq!(places(&found), places(&expected));
    for ((one, ..), (other, ..)) in found.iter().zip(&expected) {
        assert!(one.ends_with(other.as_str()) || other.ends_with(one.as_str()), "{one} {other}");
    }
    let at = |name: &str| found.iter().position(|(function, ..)| function.ends_with(name)).unwrap();
    assert_eq!(at("outer") - at("middle"), 1, "inlined, and a frame of its own");
}

#[test]
fn an_unusable_module_gets_a_note_with_the_reason() {
    let here = program();
    let own = build_id().unwrap();
    let other = "00".repeat(20);
    let table = [
        ("/nowhere/program", None, "/nowhere/program cannot be read (No such file or directory (os error 2)): name a directory that has it with --symbols; 1 of its addresses stays as it is".to_owned()),
        ("/etc/passwd", None, "/etc/passwd is not a usable ELF file (Unknown file magic); 1 of its addresses stays as it is".to_owned()),
        (&*here, Some(&*other), format!("{here} is not the file that ran: its build id is {own}, the dump's {other}; build that version again or name a directory that has it with --symbols; 1 of its addresses stays as it is")),
    ];
    for (path, build_id, expected) in table {
        let mut dump = dump(path, build_id, &[0x1234]);
        let report = Symboliser::default().symbolicate(&mut dump);
        assert_eq!(report.notes, ["no frame could be given a function:".to_owned(), expected]);
        assert_eq!(&*dump.frames[0].text, format!("#00: ???[{path} +0x1234]"), "the address stays");
    }
}

#[test]
fn a_module_is_found_in_the_directories_given_by_name_and_by_build_id() {
    let here = PathBuf::from(program());
    let own = build_id().unwrap();
    let there = std::env::temp_dir().join(format!("dmd-symbols-{}", std::process::id()));
    let by_id = there.join(".build-id").join(&own[..2]);
    std::fs::create_dir_all(&by_id).unwrap();
    std::os::unix::fs::symlink(&here, by_id.join(format!("{}.debug", &own[2..]))).unwrap();
    let directory = here.parent().unwrap().to_owned();
    let moved = format!("/gone/{}", here.file_name().unwrap().to_str().unwrap());
    let addresses = offsets(&outer());
    for (path, search) in [("/gone/renamed", there.clone()), (&*moved, directory)] {
        let mut dump = dump(path, Some(&own), &addresses);
        let report = Symboliser::new(Options { search: vec![search], threads: Some(2) })
            .symbolicate(&mut dump);
        assert_eq!((report.found, report.notes), (report.addresses, Vec::new()), "{path}");
    }
    std::fs::remove_dir_all(there).unwrap();
}

#[test]
fn a_dump_becomes_self_contained_and_keeps_its_fields() {
    let addresses = offsets(&outer());
    let path = program();
    let mut keys: Vec<String> = (0..addresses.len()).map(|at| format!("\"f{at}\"")).collect();
    keys.push("\"gone\"".to_owned());
    let frames: Vec<String> = addresses
        .iter()
        .enumerate()
        .map(|(at, offset)| format!(r##""f{at}":"#00: ???[{path} +0x{offset:x}]""##))
        .collect();
    let text = format!(
        r##"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"dark-matter"}},"later":{{"b":[1.50],"a":null}},
        "blockList":[{{"req":1,"alloc":"A","reps":["R"],"odd":1}}],
        "memreport":{{"version":1,"modules":[{{"path":"{path}","base":"0"}}],"reports":{{"R":{{"path":"explicit/r"}}}},"odd":2}},
        "traceTable":{{"A":[{}],"R":["g"]}},"frameTable":{{{},"g":"#00: explicit/r"}}}}"##,
        keys.join(","),
        frames.join(",")
    );
    let mut direct = read_slice(text.as_bytes()).unwrap();
    Symboliser::default().symbolicate(&mut direct);
    let mut written = Vec::new();
    let report =
        super::symbolicate(text.as_bytes(), &mut Symboliser::default(), &mut written).unwrap();
    assert_eq!(report.found, report.addresses);
    let read = read_slice(&written).unwrap();
    let told = |dump: &Dump| {
        let trace = dump.trace(dump.blocks.at(0).kind.alloc.unwrap());
        let frames = trace.iter().map(|frame| &dump.frames[frame.index()]);
        frames.map(|frame| (frame.text.to_string(), frame.symbol.clone())).collect::<Vec<_>>()
    };
    let (mut expected, mut found) = (told(&direct), told(&read));
    // What the dump lacked it still lacks.
    assert!(expected.pop().unwrap().0.contains("is missing from the dump"));
    assert!(found.pop().unwrap().0.contains("is missing from the dump"));
    assert_eq!(found, expected);
    let reporter = read.trace(read.reports(&read.blocks.at(0)).unwrap()[0]);
    assert_eq!(&*read.frames[reporter[0].index()].text, "#00: explicit/r");

    let written = String::from_utf8(written).unwrap();
    for kept in [r#""later":{"b":[1.50],"a":null}"#, r#""odd":1"#, r#""odd":2"#] {
        assert!(written.contains(kept), "{kept}");
    }
    let again = super::symbolicate(written.as_bytes(), &mut Symboliser::default(), &mut io::sink());
    assert_eq!(again.unwrap().addresses, 0, "nothing is left to look up");
}

/// A writer that counts the bytes of the longest piece, and all of them.
#[derive(Default)]
struct Longest(usize, usize);

impl io::Write for Longest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self = Longest(self.0.max(bytes.len()), self.1 + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_blocks_of_a_scan_are_written_in_pieces_even_without_words() {
    const JSON: &str = r#"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"scan"},
        "blockList":[{"req":0}],"memreport":{"version":1,"needs":["scannedBlocks"],
        "scannedBlocks":9000},"traceTable":{},"frameTable":{}}"#;
    let scan = [JSON.as_bytes(), &[0], &[32, 20, 4, 0].repeat(9000)].concat();
    let mut out = Longest::default();
    super::symbolicate(&*scan, &mut Symboliser::default(), &mut out).expect("a dump");
    let Longest(longest, all) = out;
    assert!(longest < 100 << 10 && all > 3 * longest, "{longest} {all}");
}

/// Returns a new, empty temporary directory.
fn scratch(name: &str) -> PathBuf {
    let there = std::env::temp_dir().join(format!("dmd-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&there);
    std::fs::create_dir_all(&there).unwrap();
    there
}

#[test]
fn a_breakpad_file_replaces_a_missing_module() {
    let there = scratch("breakpad");
    let build_id = "a3a4b5b6c1c2d1d2e1e2e3e4e5e6e7e8f1f2f3f4";
    let id = super::module::breakpad::debug_id(build_id).unwrap();
    let text =
        format!("MODULE Linux x86_64 {id} gone\nFILE 0 a.rs\nFUNC 10 20 0 a::b\n10 20 7 0\n");
    let filed = there.join("filed/gone").join(&id);
    std::fs::create_dir_all(&filed).unwrap();
    std::fs::write(filed.join("gone.sym"), &text).unwrap();
    std::fs::write(there.join("gone.sym"), &text).unwrap();
    for directory in [there.join("filed"), there.clone()] {
        let mut dump = dump("/nowhere/gone", Some(build_id), &[0x11]);
        let options = Options { search: vec![directory], threads: None };
        let report = Symboliser::new(options).symbolicate(&mut dump);
        assert_eq!((report.found, report.notes), (1, Vec::new()));
        assert_eq!(&*dump.frames[0].text, "#00: a::b (a.rs:7)");
    }
    let other = "00".repeat(20);
    let mut dump = dump("/nowhere/gone", Some(&other), &[0x11]);
    let options = Options { search: vec![there.clone()], threads: None };
    let notes = Symboliser::new(options).symbolicate(&mut dump).notes;
    assert!(notes[1].contains(&format!("its build id is {id}, the dump's 0000")), "{notes:?}");
    std::fs::remove_dir_all(there).unwrap();
}

#[test]
fn a_stripped_program_gets_a_note() {
    let there = scratch("stripped");
    let stripped = there.join("program");
    std::fs::copy(program(), &stripped).unwrap();
    let strip = std::process::Command::new("strip").arg(&stripped).status();
    if !strip.is_ok_and(|status| status.success()) {
        println!("not run: there is no working `strip` on the path");
        return;
    }
    let path = stripped.to_str().unwrap();
    let addresses = offsets(&outer());
    let mut dump = dump(path, build_id().as_deref(), &addresses);
    let notes = Symboliser::default().symbolicate(&mut dump).notes;
    let expected = format!("{path} has neither debug information nor symbols for its");
    assert!(notes.iter().any(|note| note.starts_with(&expected)), "{notes:?}");
    assert!(dump.frames[0].text.contains(" +0x"), "the address stays");
    std::fs::remove_dir_all(there).unwrap();
}
