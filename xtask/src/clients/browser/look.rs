//! The looks of the page: contrast and layout checks, and screenshots.

use serde_json::json;
use std::fs;

use super::{Bench, expect_equal, sample};
use crate::failure::Failure;

pub(crate) fn schemes(bench: &Bench) -> Result<String, Failure> {
    let file = sample(&bench.folder, "before.json", 1)?;
    let page = bench.page(&[file])?.ok_or("no page was written")?;
    let mut least = f64::MAX;
    for scheme in ["light", "dark"] {
        bench.browser.prefer(scheme)?;
        bench.open(&page)?;
        for view in ["trees", "resident"] {
            bench.browser.run("return choose(arguments[0])", &[json!({ "view": view })])?;
            bench.drawn()?;
            least = least.min(legible(bench, scheme).map_err(|error| format!("{view}, {error}"))?);
        }
    }
    bench.browser.prefer("light")?;
    Ok(format!("the least contrast is {least:.1}; nothing is too wide at 390, 800 and 1600 pixels"))
}

/// Fails if text has too little contrast or does not fit. Returns the least contrast.
pub(crate) fn legible(bench: &Bench, scheme: &str) -> Result<f64, Failure> {
    let measured = bench.browser.run(include_str!("contrast.js"), &[])?;
    let ground = measured["ground"].as_f64().unwrap_or(0.5);
    if (scheme == "dark") != (ground < 0.2) {
        return Err(format!("{scheme}: the ground has a luminance of {ground:.2}").into());
    }
    let contrast = measured["least"].as_f64().unwrap_or(0.0);
    // The minimum that WCAG requires of text.
    if contrast < 4.5 {
        return Err(format!("{scheme}: {} has a contrast of {contrast:.1}", measured["of"]).into());
    }
    for width in [390, 800, 1600] {
        bench.browser.window(width, 1000)?;
        let wide =
            bench.browser.run("return document.documentElement.scrollWidth - innerWidth", &[])?;
        if wide.as_i64().unwrap_or(1) > 0 {
            return Err(format!("{scheme}, {width} pixels: the page is {wide} too wide").into());
        }
    }
    Ok(contrast)
}

/// Checks that the sheet of resident memory equals the command line's, and that views without data
/// have no tab.
pub(crate) fn resident(bench: &Bench) -> Result<String, Failure> {
    let files = [sample(&bench.folder, "before.json", 1)?, sample(&bench.folder, "after.json", 2)?];
    bench.open(&bench.page(&files)?.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    let tabs = || browser.run("return [...$('views').children].map(tab => tab.id.slice(5))", &[]);
    if tabs()? != json!(["trees", "difference", "resident", "time"]) {
        return Err(format!("the tabs are {}", tabs()?).into());
    }
    browser.click("#view-resident")?;
    browser.wait("document.querySelector('section.resident')")?;
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    for (moment, names) in [("", &names[..]), ("0", &names[..1])] {
        browser.run("return choose(arguments[0])", &[json!({ "moment": moment })])?;
        bench.drawn()?;
        let shown = browser
            .run("return document.querySelector('section.resident').outerHTML + '\\n'", &[])?;
        let args: Vec<&str> =
            ["resident", "--html"].into_iter().chain(names.iter().map(String::as_str)).collect();
        // Between tags, a quotation mark is not escaped.
        let printed = bench.printed(&args)?.replace("&gt;", ">").replace("&quot;", "\"");
        let shown = shown.as_str().unwrap_or_default().replace("&gt;", ">");
        expect_equal("resident memory", &printed, &shown)?;
    }
    let silent = bench.folder.join("silent.json");
    fs::write(
        &silent,
        json!({ "version": 1, "hasMozMallocUsableSize": true, "reports": [] }).to_string(),
    )?;
    bench.open(&bench.page(&[silent])?.ok_or("no page was written")?)?;
    if tabs()? != json!(["trees"]) {
        return Err(format!("of an empty report, the tabs are {}", tabs()?).into());
    }
    Ok("each moment as the command line explains it; no tab where a report does not say".into())
}

pub(crate) fn areas(bench: &Bench) -> Result<String, Failure> {
    let file = sample(&bench.folder, "before.json", 1)?;
    bench.open(&bench.page(&[file])?.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    browser.click("#as-treemap")?;
    browser.wait("document.querySelector('.treemap')")?;
    // The area per byte of all rectangles of the first level.
    let scales = browser.run(
        "const kids = treemap.path[0].kids.filter(kid => kid.amount > 0).sort((a, b) => b.amount - a.amount);
         const drawing = document.querySelector('.treemap').viewBox.baseVal;
         const places = squarify(kids.map(kid => kid.amount), drawing);
         const isInside = places.every(({ x, y, width, height }) =>
           x >= -1e-6 && y >= -1e-6 && x + width <= drawing.width + 1e-6 && y + height <= drawing.height + 1e-6);
         return isInside && places.map(({ width, height }, index) => width * height / kids[index].amount)",
        &[],
    )?;
    let scales: Vec<f64> =
        scales.as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64).collect();
    let first = *scales.first().ok_or("no rectangle, or one that sticks out")?;
    if scales.iter().any(|scale| (scale / first - 1.0).abs() > 1e-6) {
        return Err(format!("areas are not as amounts: {scales:?}").into());
    }
    let crumbs = || -> Result<String, Failure> {
        let text = "return [...document.querySelectorAll('.crumbs button')].map(crumb => crumb.textContent).join(' > ')";
        Ok(browser.run(text, &[])?.as_str().unwrap_or_default().to_owned())
    };
    browser.run("document.querySelector('.cell[role=button]').focus()", &[])?;
    browser.press(&["\u{e007}"])?;
    let inside = crumbs()?;
    browser.click(".crumbs button")?;
    let outside = crumbs()?;
    if (inside.as_str(), outside.as_str())
        != ("explicit 13.16 MiB > index 9.56 MiB", "explicit 13.16 MiB")
    {
        return Err(format!("the way led to {inside}, and back to {outside}").into());
    }
    Ok(format!("{} areas are as their amounts; Enter leads in, a click out", scales.len()))
}
