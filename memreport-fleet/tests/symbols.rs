//! Stacks without symbols are looked up centrally, once for each build.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use memreport_analysis::read;

/// An element of this program alone: code for others may be a dependency's, whose types debug
/// information leaves out.
#[derive(Clone)]
struct Price(#[expect(dead_code, reason = "it takes space")] u64);

/// Allocates memory that no reporter knows, at a line of this program.
#[inline(never)]
fn allocate_unreported() -> Vec<Vec<Price>> {
    (0..100).map(|number| vec![Price(number); 1000]).collect()
}

/// Writes a dump of this process. The tests start it with a tracker.
#[test]
#[ignore = "a program that the tests start"]
fn subject_program() {
    let kept = allocate_unreported();
    let file = std::env::var_os("DUMP").expect("the name of the file");
    dmd::Dump::of(&memreport::snapshot())
        .expect("a tracker runs")
        .save(file)
        .expect("there is space");
    drop(kept);
}

fn run(words: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memreport-fleet"));
    command.args(words.iter().map(AsRef::as_ref)).env_remove("DEBUGINFOD_URLS");
    let output = command.output().expect("it is built");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    output
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Returns the texts of all columns of the files below a folder.
fn text_of(folder: &Path) -> String {
    let batches = files(folder).into_iter().flat_map(|file| {
        let bytes = fs::read(file).expect("it is there");
        memreport_fleet::table::read_parquet(bytes).expect("it is Parquet")
    });
    batches.map(|batch| format!("{batch:?}")).collect()
}

/// A dataset of one dump without symbols, of a program that is gone.
struct Production {
    dataset: PathBuf,
    build_id: String,
    /// The program, at another path.
    program: PathBuf,
}

impl Production {
    fn new(folder: &Path) -> Self {
        // A copy at another path, which is gone when its stacks are looked up. Another process
        // writes it: a program that this one has open for writing, and so each process that
        // another test starts meanwhile, cannot be run ("Text file busy").
        let program = folder.join("program");
        let mut copy = Command::new("cp");
        copy.arg(std::env::current_exe().expect("this test")).arg(&program);
        assert!(copy.status().expect("cp is there").success(), "there is space");
        let dump = folder.join("dump.json");
        let status = Command::new(&program)
            .args(["--exact", "symbols::subject_program", "--ignored"])
            .env("DMD", "--stacks=full")
            .env("DUMP", &dump)
            .output()
            .expect("it is a program");
        assert!(status.status.success(), "{status:?}");
        let modules = read::read_file(&dump).expect("a dump").extension.expect("ours").modules;
        let module = modules.iter().find(|module| Path::new(&module.path) == program);
        let build_id = module.and_then(|module| module.build_id.clone());
        let Some(build_id) = build_id else { panic!("the linker wrote no build id: {modules:?}") };
        let (dataset, gone) = (folder.join("dataset"), folder.join("gone"));
        fs::rename(&program, &gone).expect("it is there");
        run(&[&"export", &dump, &"--no-symbols", &"-o", &dataset]);
        assert!(!text_of(&dataset.join("v1/blocks")).contains("allocate_unreported"));
        Production { dataset, build_id, program: gone }
    }

    /// Looks up the stacks. Returns how many have addresses, were known, and are known now.
    fn look_up(&self, more: &[&dyn AsRef<std::ffi::OsStr>]) -> ([usize; 3], String) {
        let output =
            run(&[&[&"symbols" as &dyn AsRef<std::ffi::OsStr>, &self.dataset], more].concat());
        let text = String::from_utf8(output.stderr).expect("it is text");
        let line = text.lines().last().expect("it has a sum");
        let mut numbers = line.split([' ', ':', ',']).filter_map(|word| word.parse().ok());
        let counts = std::array::from_fn(|_| numbers.next().expect("a number"));
        (counts, text)
    }

    fn assert_symbols(&self) {
        let symbols = text_of(&self.dataset.join("v1/symbols"));
        assert!(symbols.contains("symbols::allocate_unreported"), "{symbols}");
        assert!(symbols.contains("symbols::Price]"), "the type: {symbols}");
    }
}

#[test]
fn stacks_without_symbols_are_looked_up_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let production = Production::new(folder.path());
    let store = folder.path().join("store");
    let place = store.join("buildid").join(&production.build_id);
    fs::create_dir_all(&place).expect("there is space");
    let (first, _) = production.look_up(&[&"--store", &store]);
    symlink(&production.program, place.join("debuginfo")).expect("there is no such file");
    let (second, _) = production.look_up(&[&"--store", &store]);
    let (third, _) = production.look_up(&[&"--store", &store]);
    assert!(first[0] > 0, "{first:?}");
    assert!(second[2] > 0, "the debug file has come: {second:?}");
    assert_eq!(third[2], 0, "no stack is looked up twice: {third:?}");
    assert_eq!(third[1], first[2] + second[2], "{third:?}");
    production.assert_symbols();
}

/// Serves a file at `/buildid/ID/debuginfo`, and nothing else. Returns its address, and the paths
/// that are requested.
fn serve(build_id: &str, file: &Path) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("it has one"));
    let (sender, requests) = mpsc::channel();
    let path = format!("/buildid/{build_id}/debuginfo");
    let bytes = fs::read(file).expect("it is there");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).is_ok() {}
            let requested = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut stream = reader.into_inner();
            let (status, body) =
                if requested == path { ("200 OK", &bytes[..]) } else { ("404 Not Found", &[][..]) };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
            let _ = sender.send(requested);
        }
    });
    (address, requests)
}

#[test]
fn a_debug_file_is_fetched_from_a_server_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let production = Production::new(folder.path());
    let (address, requests) = serve(&production.build_id, &production.program);
    let cache = folder.path().join("cache");
    // Nobody listens there: it is named, and the next server is asked.
    let words: [&dyn AsRef<std::ffi::OsStr>; 6] = [
        &"--debuginfod",
        &"http://127.0.0.1:1",
        &"--debuginfod",
        &address,
        &"--debuginfod-cache",
        &cache,
    ];
    let (counts, text) = production.look_up(&words);
    assert!(counts[2] > 0, "{text}");
    assert!(text.contains("http://127.0.0.1:1: ") && text.contains("is not asked again"), "{text}");
    let file = fs::read(cache.join(&production.build_id).join("debuginfo")).expect("it is kept");
    assert!(file == fs::read(&production.program).expect("it is there"));
    production.assert_symbols();
    let of_build = |path: &String| path.contains(&production.build_id);
    assert_eq!(requests.try_iter().filter(of_build).count(), 1);
    let (again, text) = production.look_up(&words);
    assert_eq!([again[1], again[2]], [counts[1] + counts[2], 0], "{text}");
    assert_eq!(requests.try_iter().filter(of_build).count(), 0);
}

#[test]
fn what_cannot_be_looked_up_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let refused = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memreport-fleet"));
        let output = command.arg("symbols").args(words).current_dir(folder).output();
        let output = output.expect("it is built");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).expect("it is text")
    };
    let text = refused(&["none"]);
    assert!(text.contains("none: no dataset, which has a folder v1"), "{text}");
    fs::create_dir_all(folder.join("data/v1/stacks")).expect("there is space");
    let text = refused(&["data", "--debuginfod", "ftp://x"]);
    assert!(text.contains("ftp://x is no address of a server"), "{text}");
    fs::write(folder.join("data/v1/stacks/half.parquet"), "PAR1").expect("there is space");
    let text = refused(&["data"]);
    assert!(text.contains("data/v1/stacks/half.parquet: "), "{text}");
}
