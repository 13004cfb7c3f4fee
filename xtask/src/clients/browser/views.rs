//! The views of the page: their sums equal the command line's, and assistive programs find no
//! fault.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Bench, heap, scripts};
use crate::build;
use crate::failure::Failure;

/// The files of a program in scan mode, and of a recording.
pub(crate) struct Files {
    pub(crate) report: PathBuf,
    dump: String,
    recording: String,
}

impl Files {
    pub(crate) fn make(bench: &Bench) -> Result<Files, Failure> {
        let report = bench.folder.join("held.json.gz");
        let held = build::debug("memreport-tests", "held")?;
        let status = Command::new(held).arg(&report).env("DMD", "--mode=scan").status()?;
        let recording = bench.folder.join("recorded.gz").display().to_string();
        let mut record = Command::new(&bench.about_memory);
        record.args(["record", "-o", &recording, "--"]);
        record.arg(build::debug("memreport-tests", "recorded")?);
        let recorded = record.env("DMD", "--mode=live").output()?.status;
        if !status.success() || !recorded.success() {
            return Err("a program failed".into());
        }
        let dump = report.display().to_string().replace(".json.gz", ".dmd.json.gz");
        Ok(Files { report, dump, recording })
    }
}

/// Compares the sums of each view with the sums that the commands print.
pub(crate) fn sums(bench: &Bench) -> Result<String, Failure> {
    let files = Files::make(bench)?;
    let page = bench.page(&[files.report.clone(), PathBuf::from(&files.recording)])?;
    bench.open_afresh(&page.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    let sum = |chosen: Value| -> Result<Value, Failure> {
        browser.run("return choose(arguments[0])", &[chosen])?;
        bench.drawn()?;
        browser.run("return table.roots.reduce((sum, item) => sum + item.size, 0)", &[])
    };
    let answer = |args: &[&str]| -> Result<Value, Failure> {
        Ok(serde_json::from_str(&bench.printed(args)?)?)
    };
    let mut compared = Vec::new();
    let mut compare = |what: &str, shown: &Value, printed: &Value| {
        if shown.as_f64() != printed.as_f64() || printed.as_f64().is_none_or(|sum| sum <= 0.0) {
            return Err(format!("{what}: {shown} on the page, {printed} printed"));
        }
        compared.push(format!("{what} {printed}"));
        Ok(())
    };
    let types = answer(&["tree", &files.dump, "--json"])?;
    compare("owners", &sum(json!({ "view": "types" }))?, &types["bytes"])?;
    let retained = answer(&["heap", "dominators", &files.dump, "--json"])?;
    compare("retained", &sum(json!({ "view": "retained" }))?, &retained["heap"]["retained"])?;
    let census = answer(&["heap", "census", &files.dump, "--json", "--by", "type"])?;
    let of_types: f64 = bytes_in(&census);
    for by in ["stack,type", "type,stack", "state,type", "reporter,type,stack"] {
        compare(by, &sum(json!({ "view": "heap", "by": by, "cut": "0" }))?, &json!(of_types))?;
    }
    for by in ["type", "crate", "site", "state", "size-class"] {
        let shown = sum(json!({ "view": "census", "count": by }))?;
        let printed = answer(&["heap", "census", &files.dump, "--json", "--by", by])?;
        compare(&format!("census by {by}"), &shown, &json!(bytes_in(&printed)))?;
        // Every group, not only their sum.
        let groups = browser.run(
            "return Object.fromEntries(table.roots.filter(({ key }) => key).map(({ key, size }) => [key, size]))",
            &[],
        )?;
        for (name, bytes) in groups.as_object().into_iter().flatten() {
            let group = &printed[name]["bytes"];
            if group.as_f64() != bytes.as_f64() {
                return Err(format!(
                    "census by {by}: {name}: {bytes} on the page, {group} printed"
                )
                .into());
            }
        }
    }
    for at in ["0.5", "end", "peak"] {
        compare(at, &recorded(bench, at, &sum)?, &printed_at(bench, &files.recording, at)?)?;
    }
    Ok(compared.join(", "))
}

/// Returns the live bytes of the recording on the page at a moment: at an end of an interval.
fn recorded(
    bench: &Bench,
    at: &str,
    sum: &dyn Fn(Value) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let chosen = match at {
        "peak" => json!({ "what": "peak", "to": "" }),
        "end" => json!({ "what": "", "to": "" }),
        _ => json!({ "what": "", "to": end_at(bench, at)?.to_string() }),
    };
    let mut all = json!({ "view": "recording", "cut": "0" });
    for (name, value) in chosen.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    sum(all)
}

/// Returns the end of the interval of this time, in microseconds.
fn end_at(bench: &Bench, seconds: &str) -> Result<u64, Failure> {
    let find = "const recording = await data.get('recordings/0');
                return recording.ends[intervalAt(recording, 1e6 * Number(arguments[0]))]";
    Ok(bench.browser.run(find, &[seconds.into()])?.as_u64().ok_or("no interval")?)
}

fn printed_at(bench: &Bench, recording: &str, at: &str) -> Result<Value, Failure> {
    let at = match at {
        "peak" | "end" => at.to_owned(),
        _ => format!("{}us", end_at(bench, at)?),
    };
    // Moments are given in milliseconds at least: those of an interval's end have a fraction.
    let at = at
        .strip_suffix("us")
        .map_or(at.clone(), |time| format!("{}s", time.parse::<f64>().unwrap_or(0.0) / 1e6));
    let printed = bench.printed(&["heap", recording, "--at", &at])?;
    let line = printed.lines().next().unwrap_or_default();
    let bytes = line.split(" live bytes").next().unwrap_or_default();
    let bytes = bytes.rsplit(' ').next().unwrap_or_default().replace(',', "");
    Ok(json!(bytes.parse::<f64>().map_err(|_| format!("no sum in {line:?}"))?))
}

/// Returns the sum of all bytes of a census by one axis.
fn bytes_in(census: &Value) -> f64 {
    match census {
        Value::Object(map) => match map.get("bytes").and_then(Value::as_f64) {
            Some(bytes) => bytes,
            None => map.values().map(bytes_in).sum(),
        },
        Value::Array(list) => list.iter().map(bytes_in).sum(),
        _ => 0.0,
    }
}

/// The views and layouts that axe looks at, with the moment that has data for each.
const LOOKS: [&str; 19] = [
    "view=trees",
    "view=trees&as=flame",
    "view=trees&as=icicle",
    "view=trees&as=treemap",
    "view=trees&as=text",
    "view=difference",
    "view=dark",
    "view=heap",
    "view=heap&as=flame",
    "view=heap&as=text",
    "view=census&then=site",
    "view=census&as=icicle",
    "view=types",
    "view=types&as=icicle",
    "view=retained",
    "view=coverage",
    "view=resident",
    "view=time",
    "view=recording&as=flame",
];

/// Runs axe on every view: wide and narrow, light and dark. First on a planted defect.
pub(crate) fn accessibility(bench: &Bench) -> Result<String, Failure> {
    let packages = match scripts::packages() {
        Ok(packages) => packages,
        Err(missing) => return Ok(format!("not run: {missing}")),
    };
    let axe = fs::read_to_string(packages.join("axe-core/axe.min.js"))?;
    let files = Files::make(bench)?;
    let mut all = heap::requests(bench)?;
    all.extend([files.report, PathBuf::from(files.recording)]);
    let page = bench.page(&all)?.ok_or("no page was written")?;
    let browser = &bench.browser;
    let violations = || -> Result<Vec<Value>, Failure> {
        let run =
            "return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
                   violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 120)}`))";
        Ok(browser.run(run, &[])?.as_array().cloned().unwrap_or_default())
    };
    let mut looked = 0;
    for (width, scheme) in [(1200, "light"), (1200, "dark"), (390, "light"), (390, "dark")] {
        browser.window(width, 900)?;
        browser.prefer(scheme)?;
        for look in LOOKS {
            bench.open(&format!("{page}#{look}"))?;
            browser.run(&format!("{axe}; window.axe = axe"), &[])?;
            if looked == 0 {
                let plant = "panel.append(element('button', { id: 'planted' }))";
                browser.run(plant, &[])?;
                if violations()?.is_empty() {
                    return Err("axe does not notice a button without a name".into());
                }
                browser.run("document.getElementById('planted').remove()", &[])?;
            }
            let found = violations()?;
            if !found.is_empty() {
                return Err(format!("{look}, {width} pixels, {scheme}: {found:?}").into());
            }
            let wide = "return document.documentElement.scrollWidth - innerWidth";
            let wide = browser.run(wide, &[])?;
            if wide.as_i64().unwrap_or(1) > 0 {
                return Err(format!("{look}, {width} pixels: the page is {wide} too wide").into());
            }
            looked += 1;
        }
    }
    browser.window(1600, 1000)?;
    browser.prefer("light")?;
    Ok(format!(
        "0 violations in {looked} looks at {} views and layouts, none wider than its window",
        LOOKS.len()
    ))
}

/// Drives the table by keys alone: enters an item, leaves it, and sorts.
pub(crate) fn table(bench: &Bench) -> Result<String, Failure> {
    let files = heap::requests(bench)?;
    bench.open_afresh(&bench.page(&files)?.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    browser.run("return choose({ view: 'heap', by: 'scope,type,stack', cut: '0' })", &[])?;
    bench.drawn()?;
    let seen = || -> Result<Value, Failure> {
        bench.drawn()?;
        browser.run(
            "return [table.items.length, table.way.length, table.rows[table.active].item.name]",
            &[],
        )
    };
    let outside = seen()?;
    browser.run("table.grid.focus()", &[])?;
    let [down, enter, back] = ["\u{e015}", "\u{e007}", "\u{e003}"];
    browser.press(&[down])?;
    let name = seen()?[2].clone();
    browser.press(&[enter])?;
    let inside = seen()?;
    if inside[1].as_i64() < Some(1) || inside[2] != name {
        return Err(format!("Enter on {name} leads to {inside}").into());
    }
    let address = browser.run("return location.href", &[])?;
    bench.open(address.as_str().unwrap_or_default())?;
    if seen()? != inside {
        return Err(format!("the address leads to {}, not to {inside}", seen()?).into());
    }
    browser.run("table.grid.focus()", &[])?;
    browser.press(&[back])?;
    browser.press(&[back])?;
    let again = seen()?;
    if (&again[0], &again[1]) != (&outside[0], &outside[1]) {
        return Err(format!("Backspace leads to {again}, not to {outside}").into());
    }
    browser.run("return choose({ sort: '-size' })", &[])?;
    bench.drawn()?;
    let sizes = browser.run("return table.items.map(item => item.size)", &[])?;
    let sizes: Vec<f64> =
        sizes.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    if !sizes.is_sorted() {
        return Err(format!("sorted by size, smallest first: {sizes:?}").into());
    }
    Ok("entered, kept in the address, left, and sorted".into())
}

/// Goes from a type to its stacks and owners by the links alone, and from the owner to what to do.
pub(crate) fn links(bench: &Bench) -> Result<String, Failure> {
    let files = Files::make(bench)?;
    bench.open_afresh(&bench.page(&[files.report])?.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    let follow = |link: &str| -> Result<Value, Failure> {
        let click = "const link = [...$('links').children].find(made => made.textContent === arguments[0]);
                     if (!link) { throw new Error(`no ${arguments[0]} among ${$('links').textContent}`); }
                     link.click()";
        browser.run(click, &[link.into()])?;
        bench.drawn()?;
        browser.run("return [chosen.view, panel.textContent.length]", &[])
    };
    let point = |name: &str| {
        let find =
            "const row = table.rows.findIndex(({ item }) => item.name.includes(arguments[0]));
                    if (row < 0) { throw new Error(`no row ${arguments[0]}`); }
                    table.activate(row)";
        browser.run(find, &[name.into()])
    };
    browser.run("return choose({ view: 'trees' })", &[])?;
    bench.drawn()?;
    point("heap-unclassified")?;
    let mut way = vec![follow("Its types")?];
    browser.run("table.activate(0)", &[])?;
    way.push(follow("Who owns this type")?);
    browser.run("return choose({ view: 'types', find: '' })", &[])?;
    bench.drawn()?;
    browser.run("table.activate(0)", &[])?;
    way.push(follow("Where such blocks are allocated")?);
    let views: Vec<&str> = way.iter().filter_map(|seen| seen[0].as_str()).collect();
    if views != ["census", "types", "heap"] {
        return Err(format!("the links led to {way:?}").into());
    }
    Ok("from a report to its types, their owner, and its blocks".into())
}
