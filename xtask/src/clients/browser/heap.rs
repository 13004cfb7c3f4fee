//! Heap details on the page: every order and threshold shows the command line's text, and keys fold
//! it.

use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Bench, expect_equal, look};
use crate::build;
use crate::failure::Failure;

/// The groupings, thresholds and functions, in the words of both the page and the command line.
const CHOICES: [(&str, &str, &str); 8] = [
    ("stack,type", "1", ""),
    ("type,stack", "1", ""),
    ("scope,type,stack", "1", ""),
    ("scope,stack,type", "0.1", ""),
    ("type,scope,stack", "0", ""),
    ("stack,type", "0", "requests::"),
    ("scope,type,stack", "0.1", "block"),
    ("type,stack", "1", "no such function"),
];

pub(crate) fn details(bench: &Bench) -> Result<String, Failure> {
    let files = requests(bench)?;
    let dump = dump_beside(&files);
    bench.open_afresh(&bench.page(&files)?.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    browser.click("#view-heap")?;
    let mut lines = 0;
    for (by, cut, within) in CHOICES {
        let chosen = json!({ "by": by, "cut": cut, "within": within });
        browser.run("return choose(arguments[0])", &[chosen])?;
        bench.drawn()?;
        let mut args = vec!["heap", &dump, "--by", by, "--min", cut];
        if !within.is_empty() {
            args.extend(["--in", within]);
        }
        let printed = bench.printed(&args)?;
        expect_equal(&args.join(" "), &printed, &bench.copied()?)?;
        lines += printed.lines().count();
    }
    let scopes = bench.printed(&["heap", &dump, "--by", "scope"])?;
    if !["search", "store", "list"].iter().all(|kind| scopes.contains(&format!("Ⓢ {kind}"))) {
        return Err(format!("the kinds of requests are not all there:\n{scopes}").into());
    }
    let moves = keyboard(bench)?;
    let mut least = f64::MAX;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme)?;
        bench.drawn()?;
        least = least.min(look::legible(bench, scheme)?);
    }
    browser.prefer("light")?;
    Ok(format!(
        "{lines} lines of {} choices as the command line prints them; {moves}; the least contrast is {least:.1}",
        CHOICES.len()
    ))
}

/// Folds the first line that has children and opens it again. Folded lines are not copied.
fn keyboard(bench: &Bench) -> Result<String, Failure> {
    let browser = &bench.browser;
    browser
        .run("return choose({ by: 'scope,type,stack', cut: '', within: '', as: 'text' })", &[])?;
    bench.drawn()?;
    let all = bench.copied()?;
    browser.run("document.querySelector('.row[tabindex=\"0\"]').focus()", &[])?;
    let [left, enter, down] = ["\u{e012}", "\u{e007}", "\u{e015}"];
    browser.press(&[left])?;
    let folded = bench.copied()?;
    if folded.lines().count() >= all.lines().count() {
        return Err("the arrow to the left folds nothing".into());
    }
    browser.press(&[enter])?;
    expect_equal("folded and unfolded", &all, &bench.copied()?)?;
    browser.press(&[down])?;
    let level = browser.run("return document.activeElement.getAttribute('aria-level')", &[])?;
    if level != "2" {
        return Err(format!("the arrow down leads to level {level}").into());
    }
    Ok("folded and unfolded by keys".into())
}

/// Opens a dump that lies beside no report: on the flame graph of its heap, with the command's sum.
pub(crate) fn alone(bench: &Bench) -> Result<String, Failure> {
    let folder = bench.folder.join("alone");
    fs::create_dir_all(&folder)?;
    fs::copy(dump_beside(&requests(bench)?), folder.join("before"))?;
    let mut page = Command::new(&bench.about_memory);
    let printed = page.args(["page", "before"]).current_dir(&folder).output()?;
    if printed.stdout != b"before.html\n" {
        return Err(String::from_utf8_lossy(&printed.stderr).into_owned().into());
    }
    bench.open(&format!("file://{}", folder.join("before.html").display()))?;
    let seen = bench.browser.run(
        "const sum = flame.items.reduce((sum, item) => sum + item.size, 0);
         return { at: `${chosen.view} as ${chosen.as}`, sum, boxes: flame.boxes.length, isSeen: flame.host.isConnected,
           tabs: [...$('views').children].map(tab => tab.id.slice(5)), heap: data.moments[0].process }",
        &[],
    )?;
    let dump = folder.join("before").display().to_string();
    let tree = bench.printed(&["heap", &dump, "--json"])?;
    let tree: serde_json::Value = serde_json::from_str(&tree)?;
    let is_right = seen["at"] == "heap as flame"
        && seen["isSeen"] == true
        && seen["boxes"].as_u64() > Some(10)
        && seen["tabs"] == json!(["dark", "heap", "census", "coverage"])
        && seen["sum"].as_f64() == tree["bytes"].as_f64()
        && seen["heap"].as_str().is_some_and(|name| name.starts_with("requests (pid "));
    if !is_right {
        return Err(format!("the page shows {seen}, of {}", tree["bytes"]).into());
    }
    Ok(format!("{} boxes of {} bytes, as the command prints", seen["boxes"], tree["bytes"]))
}

/// Writes a report of three kinds of requests, with its dump.
pub(crate) fn requests(bench: &Bench) -> Result<Vec<PathBuf>, Failure> {
    let subject = build::debug("memreport-tests", "requests")?;
    let report = bench.folder.join("requests.json.gz");
    let status = Command::new(subject).arg("spans").arg(&report).env("DMD", "1").output()?.status;
    if !status.success() {
        return Err("the program failed".into());
    }
    Ok(vec![report])
}

fn dump_beside(files: &[PathBuf]) -> String {
    files[0].display().to_string().replace(".json.gz", ".dmd.json.gz")
}
