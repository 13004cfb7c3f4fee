//! Tests stacks against the reference unwinder in unusual places, in a program that plays all
//! cases.

use std::path::{Path, PathBuf};
use std::process::Command;

const STACKS: &str = env!("CARGO_BIN_EXE_stacks");

/// Compiles the library to load and unload, with a frame of one size or another.
fn plugin(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("reloaded/plugin.rs");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(compiler);
    rustc.args(["--edition=2024", "--crate-type=cdylib", "-Copt-level=2", "-Cpanic=abort"]);
    rustc.args(options).arg("-o").arg(&path).arg(source);
    let output = rustc.output().expect("rustc is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Returns the number before, or behind, these words.
fn number(text: &str, before: &str, after: &str) -> u64 {
    let rest = text.split_once(before).map(|(_, rest)| rest);
    let word = rest.and_then(|rest| rest.split_once(after)).map(|(word, _)| word);
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no {before}: {text}"))
}

/// The moment at which the tracker starts.
#[derive(Clone, Copy)]
enum Start<'p> {
    BeforeMain,
    /// While this library is loaded, which is then unloaded.
    WhileLoaded(&'p Path),
}

#[track_caller]
fn check(unwinder: &str, seed: &str, start: Start<'_>, plugins: &[&Path]) {
    let options = format!("--unwinder={unwinder}");
    let mut stacks = Command::new(STACKS);
    match start {
        Start::BeforeMain => stacks.env("DMD", options),
        Start::WhileLoaded(library) => {
            stacks.env_remove("DMD").args(["late", &options]).arg(library)
        }
    };
    let output = stacks.args(["check", "10000", seed]).args(plugins).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{text}\n{errors}", output.status);
    let (compared, equal) = (number(&text, "compared: ", ","), number(&text, "equal: ", "\n"));
    assert!(compared >= 10_000 && compared == equal, "{text}");
    for kind in
        ["Plain", "InPanic", "InCallback", "InSignal", "OnSignalStack", "OnOtherStack", "Deep"]
    {
        assert!(number(&text, &format!("{kind}: "), "\n") > 100, "{text}");
    }
    // Hooks look known stacks up by a hash along frame pointers.
    let (hashed, again) = (number(&text, "hashed: ", ","), number(&text, "met again: ", ","));
    match unwinder {
        "frame-pointers" => assert!(hashed > 1000 && again > 100, "{text}"),
        _ => assert_eq!(hashed, 0, "{text}"),
    }
    if !plugins.is_empty() {
        assert!(number(&text, "InPlugin: ", "\n") > 100, "{text}");
        let same = number(&text, "reloaded in the same place: ", " of");
        assert!(same > 0, "the second library never lay where the first one was:\n{text}");
    }
}

#[test]
fn stacks_are_right_through_libraries_that_come_and_go() {
    let folder = std::env::temp_dir().join(format!("memreport-plugins-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a place for files");
    let small = plugin(&folder, "small.so", &[]);
    let big = plugin(&folder, "big.so", &["--cfg=big"]);
    check("cfi", "1", Start::BeforeMain, &[&small, &big]);
    // The others lie where it lay before, and its unwind information is nowhere.
    let wide = plugin(&folder, "wide.so", &["--cfg=wide"]);
    check("cfi", "3", Start::WhileLoaded(&wide), &[&small, &big]);
    // These two cannot be distinguished.
    let no_id = "-Clink-arg=-Wl,--build-id=none";
    let small = plugin(&folder, "small.so", &[no_id]);
    let big = plugin(&folder, "big.so", &[no_id, "--cfg=big"]);
    check("frame-pointers", "1", Start::BeforeMain, &[&small, &big]);
    std::fs::remove_dir_all(&folder).expect("its own folder");
}

#[test]
fn frame_pointers_give_the_stacks_of_the_reference() {
    check("frame-pointers", "2", Start::BeforeMain, &[]);
}

#[test]
fn the_dump_says_how_stacks_were_walked_and_how_many_are_truncated() {
    let names = [
        ("frame-pointers", "frame pointers"),
        ("cfi", "call frame information"),
        ("backtrace", "backtrace"),
    ];
    for (word, name) in names {
        let file = std::env::temp_dir()
            .join(format!("memreport-stacks-{word}-{}.json", std::process::id()));
        let status = Command::new(STACKS)
            .arg("dump")
            .arg(&file)
            .env("DMD", format!("--unwinder={word}"))
            .stdout(std::process::Stdio::null())
            .status()
            .expect("it starts");
        assert!(status.success(), "{status:?}");
        let text = std::fs::read(&file).expect("written");
        std::fs::remove_file(&file).expect("its own file");
        let dump: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let own = &dump["memreport"];
        // Without frame pointers this option cannot be honoured.
        let other = if word == "frame-pointers" { "call frame information" } else { name };
        assert!(own["unwinder"] == name || own["unwinder"] == other, "{}", own["unwinder"]);
        assert_eq!(own["truncatedStacks"], 10, "{word}");
        assert!(own["walkedStacks"].as_u64() > Some(20), "{word}: {}", own["walkedStacks"]);
    }
}
