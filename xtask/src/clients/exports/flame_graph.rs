//! A flame graph in Chromium.

use super::subject::Subject;
use super::{Bench, Client, equal};
use crate::clients::webdriver::chromium;
use crate::failure::Failure;

pub(crate) const CLIENT: Client =
    Client { name: "flame-graph", needs: |_| chromium::find().map(|_| ()), check };

fn check(bench: &Bench, subject: &Subject) -> Result<(), Failure> {
    let file = bench.export(&[subject], "svg", &[])?;
    let browser = bench.browser()?;
    browser.open(&format!("file://{}", file.display()))?;
    let titles = browser.wait_for(
        "return [...document.querySelectorAll('title')].map(title => title.textContent).join('\\n')",
    )?;
    let titles = titles.as_str().unwrap_or_default();
    let all = titles.lines().find_map(|title| title.strip_prefix("all (")?.split(' ').next());
    let all = all.and_then(|digits| digits.replace(',', "").parse::<i64>().ok());
    equal("all", &all, &Some(subject.sums.bytes))?;
    // Its script runs: the search box finds a frame.
    let found = browser
        .run("search('main'); return document.getElementById('matched').textContent", &[])?;
    let matches = found.as_str().is_some_and(|text| text.starts_with("Matched"));
    equal("the search finds something", &matches, &true)
}
