//! How the page looks: its colours, and pictures of it.

use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Bench, sample};
use crate::{Failure, build};

pub(super) fn schemes(bench: &Bench) -> Result<String, Failure> {
    let file = sample(&bench.folder, "before.json", 1)?;
    let page = bench.page(&[file])?.ok_or("no page was written")?;
    let mut least = f64::MAX;
    for scheme in ["light", "dark"] {
        bench.browser.prefer(scheme)?;
        bench.open(&page)?;
        let measured = bench.browser.run(include_str!("contrast.js"), &[])?;
        let ground = measured["ground"].as_f64().unwrap_or(0.5);
        if (scheme == "dark") != (ground < 0.2) {
            return Err(format!("{scheme}: the ground has a luminance of {ground:.2}").into());
        }
        let contrast = measured["least"].as_f64().unwrap_or(0.0);
        // What WCAG asks of text.
        if contrast < 4.5 {
            return Err(
                format!("{scheme}: {} has a contrast of {contrast:.1}", measured["of"]).into()
            );
        }
        least = least.min(contrast);
        for width in [800, 1600] {
            bench.browser.window(width, 1000)?;
            let wide = bench
                .browser
                .run("return document.documentElement.scrollWidth - innerWidth", &[])?;
            if wide.as_i64().unwrap_or(1) > 0 {
                return Err(format!("{scheme}, {width} pixels: the page is {wide} too wide").into());
            }
        }
    }
    bench.browser.prefer("light")?;
    Ok(format!("the least contrast is {least:.1}; nothing is too wide at 800 and 1600 pixels"))
}

/// Takes pictures for the README of the example program, before and after a structure that nobody reports.
pub(super) fn pictures(bench: &Bench, into: &Path, text: &Path) -> Result<(), Failure> {
    fs::create_dir_all(into)?;
    let files = example(bench, text)?;
    let page = bench.page(&files)?.ok_or("no page was written")?;
    for (view, scheme, width, height) in [
        ("trees", "light", 1200, 760),
        ("treemap", "dark", 1200, 760),
        ("difference", "light", 1200, 560),
        ("dark", "light", 1200, 700),
        ("coverage", "dark", 1200, 900),
        ("time", "light", 1200, 620),
        ("trees", "dark", 800, 700),
        ("treemap", "light", 800, 700),
        ("difference", "dark", 800, 600),
        ("dark", "dark", 800, 700),
        ("coverage", "light", 800, 900),
    ] {
        bench.browser.window(width, height)?;
        bench.browser.prefer(scheme)?;
        bench.open(&page)?;
        bench.browser.run("return choose(arguments[0])", &[json!({ "view": view })])?;
        bench.drawn()?;
        bench.browser.picture(&into.join(format!("{view}-{scheme}-{width}.png")))?;
    }
    Ok(())
}

/// Two snapshots of the example program with their dumps, on this folder of text.
fn example(bench: &Bench, text: &Path) -> Result<Vec<PathBuf>, Failure> {
    let subject = build::debug("memreport-tests", "fulltext")?;
    let [before, after] =
        ["before", "after"].map(|name| bench.folder.join(format!("{name}.json.gz")));
    let status = Command::new(subject)
        .arg(text)
        .args(["--plant", "unreported", "--plant", "double", "--plant", "interior"])
        .arg("--baseline")
        .arg(&before)
        .arg("--snapshot")
        .arg(&after)
        .env("DMD", "1")
        .status()?;
    if !status.success() {
        return Err("the example program failed".into());
    }
    Ok(vec![before, after])
}
