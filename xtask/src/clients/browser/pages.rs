//! The offline page: its text, folding, keys, switches, and speed.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

use super::{Bench, expect_equal, sample};
use crate::clients::firefox::Case;
use crate::failure::Failure;

/// Returns the reports of a program with all amounts multiplied by `scale`.
pub(crate) fn program(scale: i64) -> Value {
    let report = |path: &str, kind: i64, amount: i64| {
        json!({
            "process": "program (pid 7)", "path": path, "kind": kind, "units": 0, "amount": amount * scale,
            "description": format!("About {path}."),
        })
    };
    let mut reports = vec![
        report("explicit/index/words", 1, 6_000_000),
        report("explicit/index/documents", 1, 4_000_000),
        report("explicit/index/small/one", 1, 10_000),
        report("explicit/index/small/two", 1, 9_000),
        report("explicit/index/small/two", 1, 500),
        report("explicit/urls/http:\\\\example.com\\a", 1, 2_000_000),
        report("explicit/urls/http:\\\\example.com\\b", 1, 1_000),
        report("explicit/stacks", 0, 800_000),
        report("other/threads/a", 2, 3),
        report("other/threads/b", 2, 2),
        report("heap-allocated", 2, 13_000_000),
        report("resident", 2, 20_000_000),
    ];
    reports
        .extend((0..40).map(|number| report(&format!("explicit/tiny/{number}"), 1, 700 + number)));
    json!({ "version": 1, "hasMozMallocUsableSize": true, "reports": reports })
}

/// Returns the page's text for a generated case; `None` if about-memory refuses to write a page.
pub(crate) fn case(
    bench: &Bench,
    case: &Case,
    files: &[PathBuf],
) -> Result<Option<String>, Failure> {
    let Some(page) = bench.page(files)? else { return Ok(None) };
    let view = if files.len() > 1 { "difference" } else { "trees" };
    let chosen = json!({
        "view": view, "filter": case.filter, "regex": if case.is_regex { "1" } else { "" },
        "verbose": if case.is_verbose { "1" } else { "" },
    });
    bench.open(&page)?;
    // The typed filter and the switches are cleared here as well.
    bench.browser.run("return choose(arguments[0])", &[chosen])?;
    let trouble = bench.browser.run("return $('trouble').textContent", &[])?;
    if trouble != "" {
        return Ok(None);
    }
    bench.copied().map(Some)
}

/// Returns the row of a name, as a selector of the page.
fn row(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.row .name')].find(name => name.textContent === '{name}')?.parentElement"
    )
}

pub(crate) fn folding(bench: &Bench) -> Result<String, Failure> {
    let files = [sample(&bench.folder, "before.json", 1)?, sample(&bench.folder, "after.json", 2)?];
    let page = bench.page(&files)?.ok_or("no page was written")?;
    let page = format!("{page}#as=text");
    bench.open_afresh(&page)?;
    let small = row("small");
    let one = row("one");
    let is_shown = |name: &str| -> Result<bool, Failure> {
        Ok(bench.browser.run(&format!("return Boolean({name})"), &[])? == true)
    };
    let tiny = row("tiny");
    let click = |name: &str| bench.browser.run(&format!("{name}.click()"), &[]).map(drop);
    if is_shown(&one)? || !is_shown(&tiny)? {
        return Err("what is insignificant is not folded at first".into());
    }
    click(&tiny)?;
    click(&small)?;
    if !is_shown(&one)? {
        return Err("a click does not unfold".into());
    }
    bench.open(&page)?;
    if !is_shown(&one)? {
        return Err("what was unfolded is folded after a reload".into());
    }
    bench.browser.run("return choose({ moment: '0' })", &[])?;
    if !is_shown(&one)? {
        return Err("what was unfolded is folded at another moment".into());
    }
    click(&small)?;
    if is_shown(&one)? {
        return Err("a second click does not fold".into());
    }
    click(&tiny)?;
    let left = bench.browser.run("return folds.known.size", &[])?;
    if left != 0 {
        return Err(format!("{left} folds are remembered after all were undone").into());
    }
    Ok("over a reload and at another moment, until it is folded again".into())
}

pub(crate) fn keyboard(bench: &Bench) -> Result<String, Failure> {
    let file = sample(&bench.folder, "before.json", 1)?;
    let page = bench.page(&[file])?.ok_or("no page was written")?;
    bench.open_afresh(&format!("{page}#as=text"))?;
    let [right, down, left, end] = ["\u{e014}", "\u{e015}", "\u{e012}", "\u{e010}"];
    let focused = || -> Result<String, Failure> {
        let name = "return document.activeElement.querySelector?.('.name')?.textContent ?? ''";
        Ok(bench.browser.run(name, &[])?.as_str().unwrap_or_default().to_owned())
    };
    bench.browser.run("document.querySelector('.row[tabindex=\"0\"]').focus()", &[])?;
    let mut seen = vec![focused()?];
    for key in [right, right, left, down, down, down, down, right, right, left, left, end] {
        bench.browser.press(&[key])?;
        seen.push(focused()?);
    }
    let wanted = "explicit index words index words documents small urls http://example.com/a http://example.com/a urls \
                  urls tiny";
    let message = bench.browser.run("return $('description').textContent", &[])?;
    if message.as_str().unwrap_or_default().is_empty() {
        return Err("nothing describes the line that has the focus".into());
    }
    let roles = bench.browser.run(
        "const row = document.querySelector('.row[aria-expanded]');
         return [row.getAttribute('role'), row.getAttribute('aria-level'), row.closest('[role=tree]') !== null]",
        &[],
    )?;
    if roles != json!(["treeitem", "1", true]) {
        return Err(format!("a line is {roles} for a screen reader").into());
    }
    if seen.join(" ") == wanted {
        Ok(format!("{} moves", seen.len() - 1))
    } else {
        Err(format!("the focus went {}", seen.join(" ")).into())
    }
}

/// Checks that the page keeps the same tiny lines of the program's own reporters in sight as the
/// command line.
pub(crate) fn reporters(bench: &Bench) -> Result<String, Failure> {
    let mut file = program(1);
    let tiny = (0..40).step_by(2).map(|number| format!("explicit/tiny/{number}"));
    let others = [
        "explicit/index/small/two",
        "explicit/urls/http:\\\\example.com\\b",
        "resident",
        "none/such",
    ];
    let paths: Vec<String> = others.map(str::to_owned).into_iter().chain(tiny).collect();
    file["memreport"] = json!({ "version": 1, "reporters": paths });
    let path = bench.folder.join("reporters.json");
    fs::write(&path, file.to_string())?;
    let printed = bench.printed(&[&path.display().to_string()])?;
    if printed.lines().filter(|line| line.contains("(00.0")).count() < 16 {
        return Err(format!("the command line keeps no tiny reporters:\n{printed}").into());
    }
    bench.open_afresh(&bench.page(&[path])?.ok_or("no page was written")?)?;
    bench.drawn()?;
    expect_equal("reporters", &printed, &bench.copied()?)?;
    Ok("with the lines that the command line prints".into())
}

pub(crate) fn switches(bench: &Bench) -> Result<String, Failure> {
    let files = [sample(&bench.folder, "before.json", 1)?, sample(&bench.folder, "after.json", 2)?];
    let page = bench.page(&files)?.ok_or("no page was written")?;
    let [before, after] = [&files[0], &files[1]].map(|file| file.display().to_string());
    let browser = &bench.browser;
    let compare = |args: &[&str]| {
        bench.drawn()?;
        expect_equal(&args.join(" "), &bench.printed(args)?, &bench.copied()?)
    };
    bench.open_afresh(&page)?;
    compare(&[&after])?;
    browser.click("#verbose")?;
    browser.wait("chosen.verbose === '1'")?;
    compare(&["--verbose", &after])?;
    browser.type_into("#filter", "index")?;
    browser.wait("chosen.filter === 'index'")?;
    compare(&["--verbose", "--filter=index", &after])?;
    browser.type_into("#filter", "/[d-s]")?;
    browser.click("#regex")?;
    browser.wait("chosen.filter === 'index/[d-s]' && chosen.regex === '1'")?;
    compare(&["--verbose", "--regex", "--filter=index/[d-s]", &after])?;
    browser.click("#verbose")?;
    browser.run("$('units').value = 'auto'; $('units').dispatchEvent(new Event('change'))", &[])?;
    browser.wait("chosen.units === 'auto' && chosen.verbose === ''")?;
    compare(&["--units=auto", "--regex", "--filter=index/[d-s]", &after])?;
    browser.type_into("#filter", "[")?;
    browser.wait("$('trouble').textContent === '`index/[d-s][` is no regular expression.'")?;
    bench.open(&page)?;
    browser.click("#view-difference")?;
    browser.wait("chosen.view === 'difference'")?;
    compare(&["diff", &before, &after])?;
    Ok("verbose, text, expression, units, difference: each as the command line prints it; \
        an invalid expression is named"
        .into())
}

pub(crate) fn copying(bench: &Bench) -> Result<String, Failure> {
    let file = sample(&bench.folder, "before.json", 1)?;
    bench.open_afresh(&bench.page(std::slice::from_ref(&file))?.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    let (control, name) = ("\u{e009}", file.display().to_string());
    browser.press(&[control, "a"])?;
    browser.press(&[control, "c"])?;
    let field = "const field = document.createElement('textarea'); document.body.append(field); field.focus();";
    browser.run(field, &[])?;
    browser.press(&[control, "v"])?;
    let pasted = browser.run("return document.querySelector('textarea').value", &[])?;
    let printed = bench.printed(&[&name])?;
    expect_equal("pasted", &printed, pasted.as_str().unwrap_or_default())?;
    bench.browser.run("return choose({ as: 'text' })", &[])?;
    // Selects from the middle of one line to the middle of another.
    let part = browser.run(
        "const names = [...document.querySelectorAll('.row .name')];
         getSelection().setBaseAndExtent(names[1].firstChild, 2, names[3].firstChild, 3);
         return outline.selectedText(getSelection())",
        &[],
    )?;
    let lines: Vec<&str> = printed.lines().skip_while(|line| !line.contains("index")).collect();
    let start = lines[0].rsplit_once("index").map_or("", |_| "dex");
    let end = lines[2].find("documents").map_or("", |at| &lines[2][..at + 3]);
    expect_equal(
        "a part",
        &format!("{start}\n{}\n{end}", lines[1]),
        part.as_str().unwrap_or_default(),
    )?;
    Ok(format!("{} bytes through the clipboard, and a part", printed.len()))
}

/// Opens a second file on the page: its trees and the difference are those that are printed.
pub(crate) fn opened(bench: &Bench) -> Result<String, Failure> {
    let files = [sample(&bench.folder, "before.json", 1)?, sample(&bench.folder, "after.json", 2)?];
    let [before, after] = [&files[0], &files[1]].map(|file| file.display().to_string());
    bench.open_afresh(&bench.page(&files[..1])?.ok_or("no page was written")?)?;
    let browser = &bench.browser;
    browser.choose_file(&files[1])?;
    browser.wait("data.moments.length === 2")?;
    bench.drawn()?;
    expect_equal("opened", &bench.printed(&[&after])?, &bench.copied()?)?;
    browser.click("#view-difference")?;
    browser.wait("chosen.view === 'difference'")?;
    bench.drawn()?;
    expect_equal("compared", &bench.printed(&["diff", &before, &after])?, &bench.copied()?)?;
    let garbage = bench.folder.join("garbage.json");
    fs::write(&garbage, "{")?;
    browser.choose_file(&garbage)?;
    browser
        .wait("$('trouble').textContent.startsWith('garbage.json: this is no memory report')")?;
    Ok("shown and compared as the command line does; what is no report is named".into())
}
