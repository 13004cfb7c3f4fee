//! Screenshots of the page: for the README and the guide, and all views at several widths.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Bench;
use super::session;
use super::views::Files;
use crate::build;
use crate::failure::Failure;

/// A screenshot: its name, the page, the address in it, scheme, and size.
struct Picture {
    name: String,
    of: Subject,
    address: &'static str,
    scheme: &'static str,
    width: u32,
    height: u32,
}

/// The page that a screenshot shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A program with planted faults before and after an unreported structure, and a recording.
    Example,
    /// A scan.
    Scan,
    /// A report without anything in it.
    Empty,
}

/// The screenshots of the README and the guide.
const GUIDE: [(&str, Subject, &str, &str, u32, u32); 8] = [
    ("trees", Subject::Example, "view=trees", "light", 1200, 760),
    ("flame", Subject::Example, "view=heap&as=flame", "dark", 1200, 700),
    ("difference", Subject::Example, "view=difference", "light", 1200, 620),
    ("resident", Subject::Example, "view=resident", "light", 1200, 900),
    ("dark", Subject::Example, "view=dark", "light", 1200, 760),
    ("recording", Subject::Example, "view=recording&as=flame", "light", 1200, 900),
    ("owners", Subject::Scan, "view=types", "dark", 1200, 700),
    ("narrow", Subject::Example, "view=trees", "light", 390, 760),
];

/// The views and layouts of which there are screenshots at every width.
const VIEWS: [(&str, Subject, &str); 20] = [
    ("trees", Subject::Example, "view=trees"),
    ("trees-flame", Subject::Example, "view=trees&as=flame"),
    ("trees-treemap", Subject::Example, "view=trees&as=treemap"),
    ("trees-text", Subject::Example, "view=trees&as=text"),
    ("difference", Subject::Example, "view=difference"),
    ("dark", Subject::Example, "view=dark"),
    ("heap", Subject::Example, "view=heap"),
    ("heap-flame", Subject::Example, "view=heap&as=flame"),
    ("heap-difference", Subject::Example, "view=heap&base=0"),
    ("census", Subject::Example, "view=census&then=site"),
    ("types", Subject::Scan, "view=types"),
    ("retained", Subject::Scan, "view=retained&as=icicle"),
    ("coverage", Subject::Example, "view=coverage"),
    ("resident", Subject::Example, "view=resident"),
    ("time", Subject::Example, "view=time"),
    ("recording", Subject::Example, "view=recording&as=flame"),
    ("growth", Subject::Example, "view=recording&what=growth&from=100000"),
    ("empty", Subject::Empty, "view=trees"),
    ("missing", Subject::Empty, "view=heap"),
    ("error", Subject::Empty, "view=trees&filter=[&regex=1"),
];

/// Writes the screenshots.
pub(crate) fn write(bench: &Bench, into: &Path, is_every: bool) -> Result<(), Failure> {
    fs::create_dir_all(into)?;
    let mut wanted = Vec::new();
    if is_every {
        for (name, of, address) in VIEWS {
            for width in [390, 800, 1200, 1920] {
                for scheme in ["light", "dark"] {
                    let name = format!("{name}-{scheme}-{width}.png");
                    wanted.push(Picture { name, of, address, scheme, width, height: 900 });
                }
            }
        }
    } else {
        for (name, of, address, scheme, width, height) in GUIDE {
            let name = format!("{name}-{scheme}-{width}.png");
            wanted.push(Picture { name, of, address, scheme, width, height });
        }
    }
    for subject in [Subject::Example, Subject::Scan, Subject::Empty] {
        let pictures: Vec<&Picture> =
            wanted.iter().filter(|picture| picture.of == subject).collect();
        if pictures.is_empty() {
            continue;
        }
        let page = bench.page(&files(bench, subject)?)?.ok_or("no page was written")?;
        if subject == Subject::Example && !is_every {
            session::write(&bench.about_memory, &bench.folder, &into.join("session.svg"))?;
        }
        for Picture { name, address, scheme, width, height, .. } in pictures {
            bench.browser.window(*width, *height)?;
            bench.browser.prefer(scheme)?;
            bench.open(&format!("{page}#{address}"))?;
            bench.browser.picture(&into.join(name))?;
        }
    }
    Ok(())
}

fn files(bench: &Bench, subject: Subject) -> Result<Vec<PathBuf>, Failure> {
    match subject {
        Subject::Example => example(bench),
        Subject::Scan => Ok(vec![Files::make(bench)?.report]),
        Subject::Empty => {
            let empty = bench.folder.join("empty.json");
            fs::write(&empty, r#"{"version":1,"hasMozMallocUsableSize":true,"reports":[]}"#)?;
            Ok(vec![empty])
        }
    }
}

/// Takes two snapshots of the example program with their dumps, and a recording, on the guide.
fn example(bench: &Bench) -> Result<Vec<PathBuf>, Failure> {
    let subject = build::debug("memreport-tests", "fulltext")?;
    let text = build::root().join("docs/guide/src");
    let [before, after] =
        ["before", "after"].map(|name| bench.folder.join(format!("{name}.json.gz")));
    let recording = bench.folder.join("recording.gz");
    let faults = ["--plant", "unreported", "--plant", "double", "--plant", "interior"];
    let mut program = Command::new(&subject);
    program.arg(&text).args(faults).arg("--baseline").arg(&before).arg("--snapshot").arg(&after);
    let ended = program.env("DMD", "1").output()?.status;
    let mut record = Command::new(&bench.about_memory);
    record.args(["record", "-o"]).arg(&recording).arg("--").arg(&subject).arg(&text).args(faults);
    let recorded = record.env("DMD", "--mode=live").output()?.status;
    if !ended.success() || !recorded.success() {
        return Err("the example program failed".into());
    }
    Ok(vec![before, after, recording])
}
