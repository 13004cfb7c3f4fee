//! Stacks without symbols are looked up centrally, once for each build.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use memreport_analysis::read;

dmd::global_allocator!();

/// Allocates memory that no reporter knows, at a line of this program.
#[inline(never)]
fn allocate_unreported() -> Vec<Vec<u64>> {
    (0..100).map(|number| vec![number; 1000]).collect()
}

/// Writes a dump of this process. The tests start it with a tracker.
#[test]
#[ignore = "a program that the tests start"]
fn program() {
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
    let output = command.args(words.iter().map(AsRef::as_ref)).output().expect("it is built");
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

#[test]
fn stacks_without_symbols_are_looked_up_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // A copy at another path, which is gone when its stacks are looked up.
    let program = folder.join("program");
    fs::copy(std::env::current_exe().expect("this test"), &program).expect("there is space");
    let dump = folder.join("dump.json");
    let status = Command::new(&program)
        .args(["--exact", "program", "--ignored"])
        .env("DMD", "--stacks=full")
        .env("DUMP", &dump)
        .output()
        .expect("it is a program");
    assert!(status.status.success(), "{status:?}");
    let modules = read::read_file(&dump).expect("a dump").extension.expect("ours").modules;
    let module = modules.iter().find(|module| Path::new(&module.path) == program);
    let build_id = module.and_then(|module| module.build_id.clone());
    let Some(build_id) = build_id else { panic!("the linker wrote no build id: {modules:?}") };
    let dataset = folder.join("dataset");
    let store = folder.join("store");
    fs::create_dir_all(store.join("buildid").join(&build_id)).expect("there is space");
    let place = store.join("buildid").join(&build_id).join("debuginfo");
    fs::rename(&program, folder.join("gone")).expect("it is there");

    run(&[&"export", &dump, &"--no-symbols", &"-o", &dataset]);
    assert!(!text_of(&dataset.join("v1/blocks")).contains("allocate_unreported"));
    let look_up = || {
        let output = run(&[&"symbols", &dataset, &"--store", &store]);
        String::from_utf8(output.stderr).expect("it is text")
    };
    let first = look_up();
    symlink(folder.join("gone"), &place).expect("there is no such file");
    let second = look_up();
    let third = look_up();
    let count = |text: &str, at: usize| -> usize {
        let numbers: Vec<usize> =
            text.split([' ', ':', ',']).filter_map(|word| word.parse().ok()).collect();
        numbers[at]
    };
    let stacks = count(&first, 0);
    assert!(stacks > 0, "{first}");
    assert!(count(&second, 2) > 0, "the debug file has come: {second}");
    assert_eq!(count(&third, 2), 0, "no stack is looked up twice: {third}");
    assert_eq!(count(&third, 1), count(&first, 2) + count(&second, 2), "{third}");
    let symbols = text_of(&dataset.join("v1/symbols"));
    assert!(symbols.contains("symbols::allocate_unreported"), "{symbols}");
    assert!(symbols.contains("[u64]"), "the type: {symbols}");
}
