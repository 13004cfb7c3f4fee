//! The tree of a Rust program that was not prepared: its variables hold its heap.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::attach::usable;
use crate::dumps::about_memory;
use crate::subject::{Scratch, installed};

/// Compiles the subject with debug information and these options.
fn compile(scratch: &Scratch, name: &str, options: &[&str]) -> Option<PathBuf> {
    let compiler = installed("rustc")?;
    let program = scratch.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/subjects/shop.rs");
    let mut command = Command::new(compiler);
    command
        .args(["--edition=2024", "-C", "debuginfo=2", "-o"])
        .arg(&program)
        .arg(source)
        .args(options);
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Starts the subject, and waits until all is there.
fn start(program: &Path) -> Child {
    let mut command = Command::new(program);
    command.env_remove("LD_PRELOAD").env_remove("DMD");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it prints");
    assert_eq!(line, "ready\n");
    child
}

fn tree(of: &str) -> Value {
    let (text, _) = about_memory(&["tree", of, "--json"]).expect("it can be read");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the row at the end of these names, each the start of a row's name.
#[track_caller]
fn row<'t>(tree: &'t Value, names: &[&str]) -> &'t Value {
    let rows = |of: &'t Value, key: &str| of[key].as_array().expect("rows");
    let mut here = rows(tree, "rows");
    let mut found = None;
    for name in names {
        let is_it = |row: &&Value| row["name"].as_str().expect("a name").starts_with(name);
        let row = here.iter().find(is_it).unwrap_or_else(|| {
            let there: Vec<&Value> = here.iter().map(|row| &row["name"]).collect();
            panic!("no {name} of {names:?} among {there:?}")
        });
        here = rows(row, "children");
        found = Some(row);
    }
    found.expect("names")
}

/// Returns whether a row below this one has a name that begins so.
fn has(row: &Value, name: &str) -> bool {
    let mut rows = row["children"].as_array().expect("rows").iter();
    rows.any(|row| row["name"].as_str().expect("a name").starts_with(name))
}

#[track_caller]
fn bytes(tree: &Value, names: &[&str]) -> u64 {
    row(tree, names)["bytes"].as_u64().expect("a number")
}

#[track_caller]
fn assert_has_variables(tree: &Value, pid: u32) {
    let main = format!("thread {pid} (");
    let text = |length: u64| usable(length);
    // A list of five texts for each cart.
    let items = 1000 * (text(5 * 24) + 5 * text(48));
    let carts = [&*main, "shop::main", "shop: shop::Shop", "carts: BTreeMap<u32, shop::Cart>"];
    assert_eq!(bytes(tree, &[&carts[..], &["value.items: Vec<String>"]].concat()), items);
    let name = [&*main, "shop::main", "shop: shop::Shop", "name: String"];
    assert_eq!(bytes(tree, &name), text(2000));
    let log = bytes(tree, &[&main, "shop::main", "log: Vec<String>"]);
    assert!(log >= text(1000 * 24) + 1000 * text(32), "{log}");
    // A thread stands below its handle: below the variable, or in an unoptimised program below the
    // function, which has a copy beside it.
    let handle = [&*main, "shop::main", "worker: JoinHandle<usize>"];
    let handle = if has(row(tree, &handle), "thread ") { &handle[..] } else { &handle[..2] };
    let worker = [handle, &["thread "]].concat();
    assert!(row(tree, &worker)["name"].as_str().is_some_and(|name| name.ends_with("(worker)")));
    let buffer = bytes(tree, &[&worker[..], &["shop::work", "buffer: Vec<Box<u64>>"]].concat());
    assert!(buffer >= 10_000 * text(8), "{buffer}");
    let recent = bytes(tree, &[&worker[..], &["thread-locals", "shop::RECENT: "]].concat());
    let list = text(112 * 8);
    assert!((100 * text(1000)..=100 * text(1000) + list).contains(&recent), "{recent}");
    let orders = bytes(tree, &["shop::ORDERS"]);
    assert!(orders >= text(100 * 800), "{orders}");
}

#[test]
fn variables_of_functions_and_threads_hold_what_they_own() {
    let scratch = Scratch::new("variables");
    for (name, options) in [("shop", &[][..]), ("optimised", &["-O", "--crate-name=shop"])] {
        let Some(program) = compile(&scratch, name, options) else { return };
        let mut child = start(&program);
        let pid = child.id();
        let saved = scratch.join("scan.dmd.json");
        let saved = saved.to_str().expect("text");
        about_memory(&["inspect", &pid.to_string(), "--save", saved]).expect("it can be read");
        let running = tree(&pid.to_string());
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
        assert_has_variables(&running, pid);
        assert_has_variables(&tree(saved), pid);
    }
}

#[test]
fn without_debug_information_frames_have_functions() {
    let scratch = Scratch::new("functions-of-threads");
    let Some(program) = compile(&scratch, "shop", &["-C", "debuginfo=0"]) else { return };
    let mut child = start(&program);
    let pid = child.id();
    let tree = tree(&pid.to_string());
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    let main = format!("thread {pid} (");
    let carts = bytes(&tree, &[&main]);
    assert!(carts >= 1000 * 5 * usable(48), "{carts}");
    row(&tree, &[&main, "shop::main"]);
}
