//! Test cases: files with the options to show them.

use crate::generate::random::Random;
use crate::generate::reports as shapes;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// One or two files with the options to show them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The text of each file.
    pub(crate) files: Vec<Vec<u8>>,
    pub(crate) is_gzipped: bool,
    pub(crate) is_verbose: bool,
    pub(crate) filter: String,
    pub(crate) is_regex: bool,
}

impl Case {
    /// Returns a case of one file with these reports.
    pub(crate) fn of(name: &str, reports: &[Value]) -> Self {
        Case { name: name.to_owned(), files: vec![file(reports)], ..Case::default() }
    }

    /// Returns a case of two files to compare.
    pub(crate) fn diff(name: &str, first: &[Value], second: &[Value]) -> Self {
        Case { name: name.to_owned(), files: vec![file(first), file(second)], ..Case::default() }
    }

    pub(crate) fn verbose(mut self) -> Self {
        self.is_verbose = true;
        self.name += "-verbose";
        self
    }

    pub(crate) fn filtered(mut self, filter: &str) -> Self {
        self.filter = filter.to_owned();
        self.name += "-filtered";
        self
    }

    pub(crate) fn matching(mut self, regex: &str) -> Self {
        self.is_regex = true;
        self.filter = regex.to_owned();
        self.name += "-matching";
        self
    }

    /// Writes the files and returns their paths.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for (text, name) in self.files.iter().zip(["one.json", "two.json"]) {
            let path = directory.join(if self.is_gzipped {
                format!("{name}.gz")
            } else {
                name.to_owned()
            });
            if self.is_gzipped {
                let mut gzip = GzEncoder::new(fs::File::create(&path)?, Compression::fast());
                gzip.write_all(text)?;
                gzip.finish()?;
            } else {
                fs::write(&path, text)?;
            }
            paths.push(path);
        }
        Ok(paths)
    }
}

fn file(reports: &[Value]) -> Vec<u8> {
    json!({"version": 1, "hasMozMallocUsableSize": true, "reports": reports})
        .to_string()
        .into_bytes()
}

/// Returns cases generated from a seed.
pub(crate) fn random(seed: u64, count: usize) -> impl Iterator<Item = Case> {
    (0..count).map(move |index| one(seed, index))
}

fn one(seed: u64, index: usize) -> Case {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
    let random = &mut random;
    let mut first = shapes::capture(random);
    let mutations = if random.once_in(3) { 0 } else { random.index(12) };
    mutate(random, &mut first, mutations);
    let name = format!("random-{seed}-{index}");
    let mut case = if random.once_in(3) {
        let mut second = if random.once_in(4) { shapes::capture(random) } else { first.clone() };
        let changes = random.index(40);
        change(random, &mut second, changes);
        let mutations = if random.once_in(2) { 0 } else { random.index(4) };
        mutate(random, &mut second, mutations);
        Case::diff(&name, &first, &second)
    } else {
        Case::of(&name, &first)
    };
    case.is_gzipped = random.once_in(4);
    if random.once_in(6) {
        let usable = *random.pick(&["false", "null", "0", "1", "\"\"", "\"yes\""]);
        let text = |file: &Vec<u8>| {
            String::from_utf8_lossy(file).replace("Size\":true", &format!("Size\":{usable}"))
        };
        case.files = case.files.iter().map(|file| text(file).into_bytes()).collect();
    }
    if random.once_in(3) {
        case = case.verbose();
    }
    match random.index(9) {
        0 => case.filtered(random.pick::<&str>(&[
            "js",
            "explicit",
            "/",
            "zone(",
            "heap",
            "e",
            "resident",
            "\\\\",
            "none such",
        ])),
        1 => case.matching(random.pick::<&str>(&[
            "^explicit/[a-k]",
            "(js|gfx).*heap$",
            r"\d+\)",
            "^[^/]*$",
            "^(?!explicit)",
            r"(.)\1",
            "[",
            "HEAP",
            r"\bid=\d",
        ])),
        _ => case,
    }
}

/// Changes reports the way a running program does between two captures.
fn change(random: &mut Random, reports: &mut Vec<Value>, changes: usize) {
    for _ in 0..changes {
        if reports.is_empty() {
            return;
        }
        let at = random.index(reports.len());
        match random.index(6) {
            0 => {
                reports.remove(at);
            }
            1 => {
                let mut added = reports[at].clone();
                added["path"] = format!("{}/new", added["path"].as_str().unwrap_or("")).into();
                reports.push(added);
            }
            2 => reports.push(reports[at].clone()),
            3 => {
                let other = random.index(reports.len());
                reports.swap(at, other);
            }
            _ => {
                let amount = reports[at]["amount"].as_i64().unwrap_or(0);
                reports[at]["amount"] =
                    (amount / 2 + random.up_to_bits(22) - random.up_to_bits(22)).into();
            }
        }
    }
}

/// Names that are hard to sort, to print or to distinguish.
const NAMES: &[&str] = &[
    "",
    " ",
    "a b",
    "A",
    "a",
    "á",
    "a\u{301}",
    "Z",
    "z",
    "10",
    "9",
    "_",
    "-",
    "(",
    "[",
    "é",
    "ß",
    "ss",
    "日本",
    "😀",
    "𝒳",
    "\u{feff}",
    "\u{200b}",
    "a\tb",
    "__proto__",
    "constructor",
    "toString",
    "(fake child)",
    "(2 tiny)",
    "heap-unclassified",
    "x\\y\\\\z",
    "İ",
    "ı",
    "Å",
    "ﬁ",
    "Я",
    "ا",
    "π",
    "½",
    "½½",
    "%",
    "$",
    "€",
    "^:^:^",
    "0x1f",
    "length",
    "\u{a0}",
    "\u{ad}",
];

/// Damages reports the way a defective reporter or an attacker could.
fn mutate(random: &mut Random, reports: &mut Vec<Value>, mutations: usize) {
    for _ in 0..mutations {
        if reports.is_empty() {
            return;
        }
        let at = random.index(reports.len());
        let path = reports[at]["path"].as_str().unwrap_or("").to_owned();
        match random.index(16) {
            0..=2 => reports[at]["amount"] = odd_amount(random),
            3 => reports[at]["amount"] = (-random.up_to_bits(24)).into(),
            4 => reports[at]["amount"] = 0.into(),
            5 => reports.push(reports[at].clone()),
            6 | 7 => {
                let (head, _) = path.rsplit_once('/').unwrap_or((&path, ""));
                reports[at]["path"] = format!("{head}/{}", random.pick(NAMES)).into();
            }
            8 => reports[at]["path"] = format!("{path}/{}", random.pick(NAMES)).into(),
            9 => reports[at]["path"] = (*random.pick(NAMES)).into(),
            10 if random.once_in(4) => reports[at]["units"] = random.index(5).into(),
            11 if random.once_in(4) => reports[at]["kind"] = random.index(4).into(),
            12 => {
                let processes = ["web (pid 4790)", "Main Process 2", "a", "B", "10", "9", "é"];
                reports[at]["process"] = (*random.pick(&processes)).into();
            }
            13 if random.once_in(4) => {
                let field = *random.pick(&["kind", "units", "amount", "description"]);
                reports[at].as_object_mut().map(|report| report.remove(field));
            }
            14 => reports.iter_mut().filter(|report| report["path"] == "heap-allocated").for_each(
                |report| {
                    report["amount"] = random.up_to_bits(24).into();
                },
            ),
            _ => reports.truncate(at.max(1)),
        }
    }
}

fn odd_amount(random: &mut Random) -> Value {
    match random.index(12) {
        0 => i64::MAX.into(),
        1 => i64::MIN.into(),
        2 => (-0.0).into(),
        3 => 0.5.into(),
        4 => (1.005 * 1_048_576.0).into(),
        5 => (random.up_to_bits(40) as f64 / 7.0).into(),
        6 => ((1_i64 << 53) + 1).into(),
        7 => 1e300.into(),
        8 if random.once_in(3) => (*random.pick(&["", "5", "abc", "1e3", " 7 ", "-3"])).into(),
        9 if random.once_in(3) => {
            [Value::Null, true.into(), json!([]), json!([1, 2]), json!({})][random.index(5)].clone()
        }
        _ => (random.up_to_bits(62) - random.up_to_bits(62)).into(),
    }
}
