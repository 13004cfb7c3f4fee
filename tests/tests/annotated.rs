//! Patches of a program's source: what they change, that they compile, and what they classify.
//!
//! The program depends on the packages of this repository, with the versions of its Cargo.lock, so
//! that no network is needed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use about_memory::{Cli, Context};
use memreport_analysis::analysis::{ExplainOptions, coverage};
use memreport_analysis::read::Dump;
use serde_json::Value;

use crate::executable::install;

const MANIFEST: &str = r#"[package]
name = "stall"
version = "0.1.0"
edition = "2024"

[features]
memreport = ["dep:memreport", "dep:dmd"] # ours

[dependencies]
rope = { path = "../rope" }
smallvec = "1"

[dependencies.memreport]
path = "ROOT/memreport"
optional = true

[dependencies.dmd]
package = "memreport-dmd"
path = "ROOT/dmd"
optional = true
"#;

const MAIN: &str = r#"//! A stall with fruit.

mod stock;

use stock::{Item, STOCK};

#[cfg(feature = "memreport")]
dmd::global_allocator!();

fn main() {
    let mut stock = STOCK.lock().unwrap();
    for number in 0..1000 {
        stock.add(Item::new(number));
    }
    drop(stock);
    stock::RECEIPTS.lock().unwrap().extend((0..200).map(|number| format!("receipt {number}")));
    let basket = std::sync::Arc::new(std::sync::Mutex::new(stock::Pair::of(3000)));
    #[cfg(feature = "memreport")]
    memreport::snapshot().save(std::env::args().nth(1).unwrap()).unwrap();
    drop(basket);
}

#[test]
fn items_differ() {
    assert_ne!(Item::new(1).number(), Item::new(2).number());
}
"#;

const STOCK: &str = r##"//! The stock.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use rope::Rope;
use smallvec::SmallVec;

/// Everything that can be bought, by number. It stays for the whole run.
pub static STOCK: LazyLock<Mutex<Stock>> = LazyLock::new(Mutex::default); // locked

mod inner {
    pub static SMALL: std::sync::Mutex<Vec<u8>> = std::sync::Mutex::new(Vec::new());
}

/// What was sold.
pub static RECEIPTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

macro_rules! generated {
    ($name:ident) => {
        #[derive(Default)]
        pub struct $name(Vec<u8>);
    };
}
generated!(Label);

/// The items.
#[derive(Default)]
pub struct Stock {
    items: BTreeMap<u32, Arc<Item>>,
    /// Where the items are.
    places: SmallVec<[u64; 2]>,
    ropes: Vec<Rope>, // not ours
    label: Label,
    #[rustfmt::skip]
    on_sale: Vec<Box<dyn   Fn() + Send>>,
    last: Pair<u8>,
}

/// An item.
pub enum Item {
    Fruit { name: String, weight: Weight },
    Box(Vec<u64>),
    None,
}

#[derive(Default)]
pub struct Pair<T>(T, Vec<T>);

/// A number of grams, which owns nothing.
pub struct Weight(u32);

impl Pair<u8> {
    pub fn of(length: usize) -> Self {
        Pair(1, vec![1; length])
    }
}

impl Stock {
    pub fn add(&mut self, item: Item) {
        inner::SMALL.lock().unwrap().push(1);
        let number = item.number();
        self.items.insert(number, Arc::new(item));
        self.places.push(number.into());
        if number % 100 == 0 {
            self.ropes.push(Rope::new(500));
            self.label.0.extend([1; 10]);
            self.last.1.extend([2; 50]);
            self.on_sale.push(Box::new(move || println!("{number}")));
        }
    }
}

impl Item {
    pub fn new(number: u32) -> Self {
        match number % 3 {
            0 => Item::Fruit { name: format!("apple {number}"), weight: Weight(number) },
            1 => Item::Box(vec![number.into(); 10]),
            _ => Item::None,
        }
    }

    pub fn number(&self) -> u32 {
        match self {
            Item::Fruit { weight, .. } => weight.0,
            Item::Box(all) => all[0] as u32,
            Item::None => 2,
        }
    }
}
"##;

/// A program with reporters, one of whose fields is skipped, and a block that two fields count.
const DESK: &str = r#"use std::sync::{Arc, Mutex};

use memreport::MallocSizeOf;

dmd::global_allocator!();

static DESK: Mutex<Option<Desk>> = Mutex::new(None);

memreport::reporter!("explicit/desk", DESK, "All on the desk.");

#[derive(MallocSizeOf)]
struct Desk {
    pictures: Pictures,
    frame: Frame,
    /// Kept for a while.
    #[malloc_size_of(ignore = "later")]
    notes: Vec<String>, // many
    #[malloc_size_of(ignore = "short")]
    label: String,
}

#[derive(MallocSizeOf)]
struct Pictures {
    #[malloc_size_of(shared = here)]
    all: Vec<Arc<[u8]>>,
}

#[derive(MallocSizeOf)]
struct Frame {
    #[malloc_size_of(part, shared = here)]
    shown: Arc<[u8]>, // one of all
}

fn main() {
    let all: Vec<Arc<[u8]>> = (1..9).map(|number| vec![number; 3000].into()).collect();
    let frame = Frame { shown: Arc::clone(&all[3]) };
    let notes = (0..500).map(|number| format!("note {number}")).collect();
    let label = "a desk".to_owned();
    *DESK.lock().unwrap() = Some(Desk { pictures: Pictures { all }, frame, notes, label });
    memreport::snapshot().save(std::env::args().nth(1).unwrap()).unwrap();
}
"#;

const ROPE: &str = "pub struct Rope(#[expect(dead_code)] Vec<u8>);\nimpl Rope {\n    pub fn new(length: usize) -> Self {\n        Rope(vec![1; length])\n    }\n}\n";

/// The package of a program, in a folder that stays the same, so that it is not built anew.
struct Package(PathBuf);

impl Package {
    fn new(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        env!("CARGO_TARGET_TMPDIR").hash(&mut hasher);
        let folder = std::env::temp_dir().join(format!("memreport-annotate-{:x}", hasher.finish()));
        let folder = folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        let package = Package(folder.join("stall"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder");
        let lock = fs::read_to_string(root.join("Cargo.lock")).expect("a lock file");
        let manifest = MANIFEST.replace("ROOT", root.to_str().expect("a path in UTF-8"));
        for (file, text) in [
            ("Cargo.toml", &*manifest),
            ("Cargo.lock", &lock),
            ("src/main.rs", MAIN),
            ("src/stock.rs", STOCK),
            (
                "../rope/Cargo.toml",
                "[package]\nname = \"rope\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("../rope/src/lib.rs", ROPE),
            (
                "../other/Cargo.toml",
                "[package]\nname = \"other\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            ),
            ("../other/src/lib.rs", ""),
        ] {
            package.write(file, text);
        }
        package
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("it was written")
    }

    fn write(&self, file: &str, text: &str) {
        fs::create_dir_all(self.path(file).parent().expect("a folder")).expect("a folder");
        fs::write(self.path(file), text).expect("a file");
    }

    /// Runs cargo with the debug information that types need.
    fn cargo(&self, words: &[&str]) {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-memreport");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(words).current_dir(&self.0).env("CARGO_TARGET_DIR", target);
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "2").env("CARGO_NET_OFFLINE", "true");
        let output = cargo.env_remove("RUSTFLAGS").output().expect("cargo runs the tests");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
    }

    /// Builds the program and takes a scan.
    fn scan(&self, name: &str) -> PathBuf {
        self.cargo(&["build", "--features", "memreport"]);
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-memreport");
        // Another test's program of the same name would take its place.
        let program = self.path("stall");
        install(&target.join("debug/stall"), &program, 0o755);
        let report = self.path(&format!("{name}.json"));
        let status = Command::new(program).arg(&report).env("DMD", "--mode=scan").status();
        assert!(status.expect("it starts").success());
        self.path(&format!("{name}.dmd.json"))
    }

    /// Runs `about-memory annotate`. Returns its status, its answer and its notes.
    fn annotate(&self, dump: &Path, words: &[&str]) -> Result<String, String> {
        let manifest = self.path("Cargo.toml");
        let fixed = ["about-memory".as_ref(), "annotate".as_ref(), dump.as_os_str()];
        let own = ["--manifest-path".as_ref(), manifest.as_os_str()];
        let own = own.into_iter().filter(|_| !words.contains(&"--manifest-path"));
        let fixed = fixed.into_iter().chain(own);
        let words = fixed.chain(words.iter().map(AsRef::as_ref)).map(ToOwned::to_owned);
        let cli = Cli::parse_words(words).expect("right words");
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let done = cli.run(&mut Context::new(&mut out, &mut notes));
        match done {
            Ok(status) => {
                assert_eq!(status, ExitCode::SUCCESS);
                Ok(String::from_utf8(out).expect("text"))
            }
            Err(failure) => Err(failure.with_causes()),
        }
    }
}

/// Reads a dump, with the names of its functions.
fn dump(path: &Path) -> Dump {
    let bytes = fs::read(path).expect("a dump");
    let mut dump = memreport_analysis::read::read_slice(&bytes).expect("a dump");
    let _ = memreport_analysis::symbols::Symboliser::default().symbolicate(&mut dump);
    dump
}

#[track_caller]
fn assert_has(text: &str, wanted: &str) {
    assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn a_patch_compiles_and_classifies_what_it_predicts() {
    let package = Package::new("whole");
    let before = package.scan("before");
    let json = package.annotate(&before, &["--json"]).expect("a patch");
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_fits_schema(&json);
    let patch = json["diff"].as_str().expect("a text");
    for part in [
        "+#[cfg_attr(feature = \"memreport\", derive(memreport::MallocSizeOf))]\n pub enum Item {",
        "+#[cfg_attr(feature = \"memreport\", derive(memreport::MallocSizeOf))]\n pub struct Pair<T>(T, Vec<T>);",
        "+#[cfg_attr(feature = \"memreport\", derive(memreport::MallocSizeOf))]\n pub struct Weight(u32);",
        "+    #[cfg_attr(feature = \"memreport\", malloc_size_of(ignore = \"memreport cannot measure Rope\"))]\n     ropes: Vec<Rope>, // not ours",
        "malloc_size_of(ignore = \"the source of Label is not found, as a macro or a function contains it\"))]\n     label: Label,",
        "pub static STOCK: LazyLock<Mutex<Stock>> = LazyLock::new(Mutex::default); // locked\n \n\
         +#[cfg(feature = \"memreport\")]\n\
         +memreport::reporter!(\"explicit/stall/stock\", STOCK, \"Everything that can be bought, by number.\");\n",
        "+    #[cfg(feature = \"memreport\")]\n+    memreport::reporter!(\"explicit/stall/small\", SMALL, \"The heap that SMALL owns.\");\n",
        "+    memreport::report_value(\"explicit/stall/basket\", &basket, \"The heap that basket owns.\").forever();",
        "     on_sale: Vec<Box<dyn   Fn() + Send>>,",
    ] {
        assert_has(patch, part);
    }
    assert_has(patch, "+features = [\"smallvec\"]");
    let other = package.path("../other/Cargo.toml");
    let other = other.to_str().expect("a path in UTF-8");
    let refusal = package.annotate(&before, &["--manifest-path", other]).expect_err("another");
    assert_has(&refusal, "has no type or static of stall; run this in the program's workspace");
    assert_eq!(package.read("src/stock.rs"), STOCK, "without --apply nothing changes");

    let applied = package.annotate(&before, &["--apply"]).expect("it is applied");
    assert_has(&applied, "\n  report stall::stock::RECEIPTS: ");
    let refusal = package.annotate(&before, &["--apply"]).expect_err("the source is newer");
    assert_has(&refusal, "src/stock.rs");
    assert_has(&refusal, "changed after the program was built; build it");
    assert_has(&package.read("Cargo.toml"), "memreport = [\"dep:memreport\", \"dep:dmd\"] # ours");
    let with_patch = package.read("src/stock.rs");
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.filter(|line| STOCK.lines().any(|old| old == *line)).map(str::to_owned).collect()
    };
    assert_eq!(lines(&with_patch), lines(STOCK), "only lines are added");
    // The program also compiles without the feature, and its tests pass.
    package.cargo(&["test", "--quiet"]);
    let after = package.scan("after");
    let coverage =
        coverage(&dump(&after), &ExplainOptions::default()).expect("a scan with reports");
    let number = |name: &str| json[name].as_i64().expect("a number") as f64;
    let predicted = 100.0 * number("predicted") / number("heap");
    assert!(number("classified") < number("heap") / 100.0, "it begins with nothing");
    assert!(predicted > 85.0, "{predicted} % are predicted");
    assert!(
        (coverage.score() - predicted).abs() < 0.5,
        "{} % instead of {predicted} %",
        coverage.score()
    );
    assert_eq!(coverage.twice.usable(), 0, "nothing is reported twice");

    let refusal = package.annotate(&after, &[]).expect_err("nothing is left to report");
    assert_has(&refusal, "nothing to annotate: ");
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn skipped_fields_are_measured_and_a_block_is_counted_by_one_field() {
    let package = Package::new("desk");
    package.write("src/main.rs", DESK);
    let before = package.scan("before");
    let covered = |path: &Path| coverage(&dump(path), &ExplainOptions::default());
    let coverage = covered(&before).expect("a scan with reports");
    assert!(coverage.twice.usable() >= 3000, "a picture is reported twice");
    let json = package.annotate(&before, &["--json"]).expect("a patch");
    let json: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_fits_schema(&json);
    let patch = json["diff"].as_str().expect("a text");
    for part in [
        "     /// Kept for a while.\n-    #[malloc_size_of(ignore = \"later\")]\n     notes: Vec<String>, // many\n",
        "-    #[malloc_size_of(part, shared = here)]\n\
         +    #[malloc_size_of(part, shared = elsewhere)]\n     shown: Arc<[u8]>, // one of all\n",
        "     #[malloc_size_of(ignore = \"short\")]\n     label: String,\n",
    ] {
        assert_has(patch, part);
    }
    let changed = |sign: char| {
        let is_changed = |line: &&str| line.starts_with(sign) && !line.starts_with("+++");
        patch.lines().filter(is_changed).filter(|line| !line.starts_with("---")).count()
    };
    assert_eq!((changed('-'), changed('+')), (2, 1), "nothing else changes: {patch}");

    package.annotate(&before, &["--apply"]).expect("it is applied");
    let coverage = covered(&package.scan("after")).expect("a scan with reports");
    assert_eq!(coverage.twice.usable(), 0, "nothing is reported twice");
    let number = |name: &str| json[name].as_i64().expect("a number") as f64;
    let predicted = 100.0 * number("predicted") / number("heap");
    assert!(
        (coverage.score() - predicted).abs() < 0.5,
        "{} % instead of {predicted} %",
        coverage.score()
    );
}

/// Fails if an answer does not fit the schema of `annotate --json`.
#[track_caller]
fn assert_fits_schema(answer: &Value) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder");
    let text = fs::read_to_string(root.join("docs/json/annotate.schema.json")).expect("a schema");
    let schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<_> = schema.iter_errors(answer).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    let mut other = answer.clone();
    other["unknown"] = Value::Null;
    assert!(!schema.is_valid(&other), "the schema takes anything");
}
