//! Valgrind's page for DHAT's files, in Chromium.

use super::subject::Subject;
use super::{Bench, Client, equal, tools};
use crate::clients::webdriver::chromium;
use crate::failure::Failure;

pub(crate) const CLIENT: Client = Client {
    name: "dh-view",
    needs: |_| {
        tools::dh_view()?;
        chromium::find().map(|_| ())
    },
    check,
};

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    let sums = &subject.sums;
    let text = shown(bench, subject, &[])?;
    equal("Total", &bytes(&text, "Total:"), &Some(sums.allocated))?;
    equal("At t-end", &bytes(&text, "At t-end:"), &Some(sums.live.unwrap_or(0)))?;
    if let Some(recorded) = &subject.recorded {
        equal("At t-gmax", &bytes(&text, "At t-gmax:"), &Some(recorded.at_peak))?;
    }
    let Some(classes) = sums.classes else { return Ok(()) };
    let of_classes = [
        ("unreported", "Unreported, allocated at {"),
        ("once", "Reported once, allocated at {"),
        ("twice", "Reported twice, allocated at {"),
    ];
    for ((only, verb), expected) in of_classes.into_iter().zip(classes) {
        let text = shown(bench, subject, &["--only", only])?;
        equal(verb, &text.contains(verb), &true)?;
        equal(verb, &bytes(&text, "Total:"), &Some(expected))?;
    }
    Ok(())
}

/// Returns the page's text once it has loaded the file.
fn shown(bench: &Bench, subject: &Subject, options: &[&str]) -> Result<String, Failure> {
    let file = bench.export(&[subject], "dhat", options)?;
    let browser = bench.browser()?;
    browser.open(&format!("file://{}", tools::dh_view()?.display()))?;
    browser.choose_file(&file)?;
    let text = browser.wait_for(
        "const text = document.body.innerText; \
         return (/PP 1/.test(text) || document.querySelector('.error')) && text",
    )?;
    let trouble = browser.run(
        "return [...document.querySelectorAll('.error')].map(error => error.innerText).join(' ')",
        &[],
    )?;
    match trouble.as_str() {
        Some("") => Ok(text.as_str().unwrap_or_default().to_owned()),
        _ => Err(format!("the page shows {trouble}").into()),
    }
}

/// Returns the number behind the first line with this label, which is the root's.
fn bytes(text: &str, label: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
    let digits = line.trim_start().split(' ').next()?.replace(',', "");
    digits.parse().ok()
}
