//! Speedscope's page and the schema of its file.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::subject::Subject;
use super::{Bench, Client, equal, schema};
use crate::clients::file_server::{Files, serve};
use crate::clients::webdriver::chromium;
use crate::failure::Failure;

pub(crate) const CLIENT: Client = Client {
    name: "speedscope",
    needs: |found| {
        found.speedscope()?;
        chromium::find().map(|_| ())
    },
    check,
};

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    let sums = &subject.sums;
    let file = bench.export(&[subject], "speedscope", &[])?;
    let folder = bench.tools.speedscope()?;
    let folder = folder.parent().ok_or("speedscope is in no folder")?;
    let rules: Value = serde_json::from_slice(&fs::read(folder.join("file-format-schema.json"))?)?;
    let written: Value = serde_json::from_slice(&fs::read(&file)?)?;
    if let Some(violation) = schema::violation(&rules, &written)? {
        return Err(violation.into());
    }
    let mut expected = vec![sums.bytes];
    expected.extend(sums.classes.into_iter().flatten());
    equal("profiles", &opened(bench, folder, &file)?, &expected)?;
    // It reads folded stacks and pprof's file too.
    let folded = bench.export(&[subject], "folded", &[])?;
    equal("folded stacks", &opened(bench, folder, &folded)?, &vec![sums.bytes])?;
    let pprof = bench.export(&[subject], "pprof", &[])?;
    let all = opened(bench, folder, &pprof)?;
    equal("pprof", &all.contains(&sums.live.unwrap_or(sums.bytes)), &true)
}

/// Returns the bytes of each profile in the file that the page saves again.
fn opened(bench: &Bench, folder: &Path, file: &Path) -> Result<Vec<i64>, Failure> {
    let address = serve(Files { folder: Some(folder.to_owned()), ..Files::default() })?;
    let browser = bench.browser()?;
    browser.open(&format!("{address}/index.html"))?;
    browser.wait_for("return document.querySelector('input[type=file]') !== null")?;
    browser.choose_file(file)?;
    browser.wait_for("return /Time Order/.test(document.body.innerText)")?;
    browser.run(
        "URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return '#'; };
         HTMLAnchorElement.prototype.click = () => {};
         const button = [...document.querySelectorAll('div')]
           .filter(div => /Export$/.test(div.innerText.trim())).pop();
         button.click();",
        &[],
    )?;
    let saved = browser.wait_for("return window.saved")?;
    let saved: Value = serde_json::from_str(saved.as_str().unwrap_or_default())?;
    let total =
        |profile: &Value| Some(profile["endValue"].as_i64()? - profile["startValue"].as_i64()?);
    Ok(saved["profiles"].as_array().into_iter().flatten().filter_map(total).collect())
}
