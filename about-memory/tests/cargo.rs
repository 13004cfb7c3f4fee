//! Tests `cargo memreport` in projects as a user would have them: a fresh one, and a workspace with
//! two binaries.
//!
//! Their dependencies are the packages of this repository, with the versions of its Cargo.lock, so
//! that no network is needed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of this repository.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A folder for a project, empty, at a place that is the same in each run, so that the project is
/// not built anew. It is outside of this repository, whose workspace `cargo new` would change.
fn folder(name: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_TARGET_TMPDIR").hash(&mut hasher);
    let parent = std::env::temp_dir().join(format!("memreport-cargo-{:x}", hasher.finish()));
    let folder = parent.join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(repository().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// Runs `cargo memreport` in a folder.
fn memreport(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-memreport"));
    command.arg("memreport").args(words).current_dir(folder);
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-memreport"));
    command.env("CARGO_NET_OFFLINE", "true").env("RUST_BACKTRACE", "1");
    for name in ["DMD", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

#[track_caller]
fn answer(folder: &Path, words: &[&str]) -> String {
    let output = memreport(folder, words);
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {notes}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refusal(folder: &Path, words: &[&str]) -> String {
    let output = memreport(folder, words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[track_caller]
fn assert_has(text: &str, wanted: &str) {
    assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn a_fresh_project_is_prepared_and_measured() {
    let parent = folder("fresh");
    let new = Command::new("cargo")
        .args(["new", "--quiet", "--vcs", "none", "fresh-hello"])
        .current_dir(&parent)
        .status();
    assert!(new.unwrap().success());
    let hello = parent.join("fresh-hello");
    fs::rename(parent.join("Cargo.lock"), hello.join("Cargo.lock")).unwrap();
    // Not prepared, it is tracked all the same.
    let text = answer(&hello, &["run"]);
    assert_has(&text, "Hello, world!");
    assert_has(&text, "heap-allocated");
    let root = repository().to_str().unwrap();
    let added = answer(&hello, &["init", "--path", root]);
    assert_has(&added, "src/main.rs: added the allocator, a reporter of EXAMPLE");
    let read =
        || ["Cargo.toml", "src/main.rs"].map(|name| fs::read_to_string(hello.join(name)).unwrap());
    let before = read();
    let text = answer(&hello, &["run", "--verbose"]);
    assert_has(&text, "Hello, world!");
    assert_has(&text, "hello/example");
    // The debug information of a release is of the flags, not of a profile.
    let text = answer(&hello, &["run", "--release"]);
    assert_has(&text, "Hello, world!");
    let again = answer(&hello, &["init", "--path", root]);
    assert_eq!(again.matches("nothing to add").count(), 2, "{again}");
    assert_eq!(read(), before);
    assert!(!before[0].contains("[profile"), "{}", before[0]);
    let text = answer(&hello, &["record", "-o", "hello.rec"]);
    assert_has(&text, "Recorded into hello.rec");
    let own = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    assert!(!own.contains("fresh-hello"), "the project is in the workspace of this repository");
}

const WORKSPACE: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\nmembers = [\"till\", \"stock\"]\nresolver = \"3\"\n"),
    (
        "till/Cargo.toml",
        "[package]\nname = \"till\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nstock = { path = \"../stock\" } # ours\n",
    ),
    (
        "till/src/main.rs",
        "use std::sync::Mutex;\n\nstatic RECEIPTS: Mutex<Vec<String>> = Mutex::new(Vec::new());\n\n\
         fn main() {\n    for n in stock::load() {\n        RECEIPTS.lock().unwrap().push(format!(\"number {n}\"));\n    }\n    \
         println!(\"till {:?}\", std::env::args().nth(1));\n}\n",
    ),
    ("stock/Cargo.toml", "[package]\nname = \"stock\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
    (
        "stock/src/lib.rs",
        "use std::sync::Mutex;\npub static SEEN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());\n\
         pub fn load() -> Vec<u32> {\n    (0..1000).collect()\n}\n\
         pub fn leak() {\n    std::mem::forget(vec![0u8; 1000]);\n}\n\
         pub fn keep() {\n    SEEN.lock().unwrap().push(vec![1; 5000]);\n}\n\
         #[cfg(test)]\nmod tests {\n    use super::*;\n\
             #[test]\n    fn loads() { assert_eq!(load().len(), 1000); }\n\
             #[test]\n    fn leaks() { leak(); }\n\
             #[test]\n    fn keeps() { keep(); }\n\
             #[test]\n    fn both_in_a_thread() { std::thread::spawn(|| { leak(); keep(); }).join().unwrap(); }\n\
             #[test]\n    #[should_panic]\n    fn panics() { load(); panic!(\"on purpose\"); }\n\
             #[test]\n    #[ignore]\n    fn ignored() { leak(); }\n}\n",
    ),
    (
        "stock/src/bin/stock-server.rs",
        "fn main() {\n    println!(\"server {}\", stock::load().len());\n}\n",
    ),
    (
        "stock/tests/fails.rs",
        "#[test]\nfn fails() {\n    println!(\"it printed this\");\n    assert!(stock::load().is_empty());\n}\n",
    ),
    (
        "stock/benches/loading.rs",
        "fn main() {\n    println!(\"loading {:?}\", std::env::args().skip(1).collect::<Vec<_>>());\n    stock::keep();\n}\n",
    ),
];

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn a_workspace_with_two_binaries_asks_which_one_is_meant() {
    let shop = folder("shop");
    write(&shop, WORKSPACE);
    let bench = "\n[[bench]]\nname = \"loading\"\nharness = false\n";
    let stock = shop.join("stock/Cargo.toml");
    fs::write(&stock, fs::read_to_string(&stock).unwrap() + bench).unwrap();
    let root = repository().to_str().unwrap();
    let added = answer(&shop, &["init", "--path", root]);
    assert_has(&added, "till/src/main.rs: added the allocator, a reporter of RECEIPTS");
    assert_has(&added, "stock/src/bin/stock-server.rs: added the allocator");
    let manifest = fs::read_to_string(shop.join("till/Cargo.toml")).unwrap();
    assert_has(&manifest, "stock = { path = \"../stock\" } # ours\n");
    assert_has(&refusal(&shop, &["run"]), "choose one: --bin till, --bin stock-server");
    assert_has(
        &refusal(&shop, &["run", "--bin", "tills"]),
        "there is no bin `tills`; there is --bin till, --bin stock-server",
    );
    assert_has(&refusal(&shop, &["run", "-p", "tills"]), "no package `tills`; it has till, stock");
    let text = answer(&shop, &["run", "--bin", "till", "--", "--port"]);
    assert_has(&text, "till Some(\"--port\")");
    assert_has(&text, "till/receipts");
    // In the folder of a package, its own binary is meant.
    assert_has(&answer(&shop.join("stock"), &["run"]), "server 1000");
    let text = answer(&shop.join("stock"), &["bench", "--", "wide"]);
    assert_has(&text, "loading [\"--bench\", \"wide\"]");
    assert_has(&text, "stock::keep (");
    tests_run_by_themselves(&shop);
}

/// In the folder of a package, resolver 1 takes `package/feature` for the feature of a dependency.
#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn features_are_enabled_with_the_first_resolver_too() {
    let old = folder("old");
    write(&old, WORKSPACE);
    write(&old, &[("Cargo.toml", "[workspace]\nmembers = [\"till\", \"stock\"]\n")]);
    let root = repository().to_str().unwrap();
    answer(&old, &["init", "--path", root]);
    assert_has(&answer(&old, &["run", "--bin", "till"]), "till/receipts");
    assert_has(&answer(&old.join("till"), &["run"]), "till/receipts");
    let words = ["run", "--bin", "till", "--without-feature", "--features", "till/memreport"];
    assert_has(&answer(&old, &words), "till/receipts");
    // Several packages: each is built with its own features.
    let text = String::from_utf8(memreport(&old, &["test", "loads"]).stdout).unwrap();
    assert_has(&text, "tests::loads: ok; nothing left behind");
}

/// The tests of the package `stock`, each in a process of its own.
fn tests_run_by_themselves(shop: &Path) {
    let output = memreport(&shop.join("stock"), &["test", "--lib"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let left = |test: &str| {
        let line = text.lines().find(|line| line.contains(&format!("tests::{test}: ")));
        line.unwrap_or_else(|| panic!("no {test} in {text}")).split_once("; ").unwrap().1.to_owned()
    };
    let kept = "5,104 bytes in 2 blocks unreported";
    assert_eq!(left("loads"), "nothing left behind", "{text}");
    assert_eq!(left("panics"), "nothing left behind", "{text}");
    assert_eq!(left("leaks"), "1,000 bytes in 1 block leaked");
    assert_eq!(left("keeps"), kept);
    assert_eq!(left("both_in_a_thread"), format!("1,000 bytes in 1 block leaked, {kept}"));
    assert!(!text.contains("ignored"), "{text}");
    assert_has(&text, "stock::leak (src/lib.rs:7)");
    assert_has(&text, "no reporter reaches static stock::SEEN");
    assert_has(&text, "5 passed, 0 failed; 2 leaked memory, 2 left unreported memory");
    let status =
        |words: &[&str]| memreport(&shop.join("stock"), &[&["test"], words].concat()).status.code();
    assert_eq!(status(&["--lib", "loads", "--fail-on", "leaked"]), Some(0));
    assert_eq!(status(&["--lib", "--fail-on", "leaked"]), Some(1));
    let output = memreport(&shop.join("stock"), &["test", "--test", "fails"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_has(&text, "fails: FAILED; nothing left behind");
    assert_has(&text, "it printed this");
}

#[test]
fn what_cannot_be_prepared_stays_as_it_is() {
    let library = folder("library");
    fs::remove_file(library.join("Cargo.lock")).unwrap();
    let manifest =
        "[package]\nname = \"library\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    write(&library, &[("Cargo.toml", manifest), ("src/lib.rs", "")]);
    assert_has(&refusal(&library, &["init"]), "only a program declares an allocator");
    let own =
        "#[global_allocator]\nstatic A: std::alloc::System = std::alloc::System;\nfn main() {}\n";
    write(&library, &[("src/main.rs", own)]);
    let message = refusal(&library, &["init"]);
    assert_has(&message, "src/main.rs: line 1: the program declares an allocator.");
    assert_eq!(fs::read_to_string(library.join("Cargo.toml")).unwrap(), manifest);
    assert_has(&refusal(&library, &["init", "--path", "src"]), "no clone of memreport");
    assert_has(
        &refusal(&library.join(".."), &["init", "--manifest-path", "none/Cargo.toml"]),
        "failed",
    );
}
