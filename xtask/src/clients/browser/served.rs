//! The served page: it measures and minimizes a running program, and compares and saves snapshots.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Bench, expect_equal};
use crate::build;
use crate::failure::Failure;

/// A program that ends when this is dropped.
struct Running(Child);

impl Running {
    /// Starts the program and returns the first line that it prints.
    fn start(command: &mut Command) -> Result<(Running, String), Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let message = child.stdout.take().ok_or("no output")?;
        let running = Running(child);
        let mut line = String::new();
        BufReader::new(message).read_line(&mut line)?;
        Ok((running, line.trim_end().to_owned()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn program(bench: &Bench) -> Result<String, Failure> {
    let subject = build::debug("memreport-tests", "served")?;
    let (program, _) = Running::start(Command::new(subject).env("DMD", "1"))?;
    let pid = program.0.id().to_string();
    let (_server, address) =
        Running::start(Command::new(&bench.about_memory).args(["serve", &pid]))?;
    bench.open(&address)?;
    let browser = &bench.browser;
    if browser.run("return location.search", &[])? != "" {
        return Err("the token is still in the address".into());
    }
    let amount = |path: &str| -> Result<f64, Failure> {
        let find = "const page = await data.get(`moments/${present().id}/reports`);
                    return page.reports.find(report => report.path === arguments[0])?.amount ?? 0";
        Ok(browser.run(find, &[path.into()])?.as_f64().unwrap_or(-1.0))
    };
    let moments = |count: usize| {
        browser.wait(&format!("service.moments.length === {count} && !$('measure').disabled"))
    };
    moments(1)?;
    let before = amount("explicit/served/cache")?;
    browser.click("#minimize")?;
    moments(2)?;
    let after = amount("explicit/served/cache")?;
    if !(before >= 1_000_000.0 && after == 0.0) {
        return Err(format!("the cache had {before} bytes, and {after} after minimizing").into());
    }
    browser.click("#measure-and-save")?;
    moments(3)?;
    let file = downloaded(&bench.browser.downloads())?;
    let printed = bench.printed(&[&file.display().to_string()])?;
    expect_equal("the file that was saved", &printed, &bench.copied()?)?;
    browser.click("#view-difference")?;
    browser.wait("chosen.view === 'difference'")?;
    browser.run("return choose({ first: '0', second: '1' })", &[])?;
    let difference = bench.copied()?;
    if !difference.lines().any(|line| line.contains("-0.96 MB") && line.contains("cache")) {
        return Err(format!("the difference does not show the cache:\n{difference}").into());
    }
    browser.click("#view-dark")?;
    browser.wait("document.querySelector('.verdict')")?;
    let message = browser.run("return document.querySelector('.verdict').textContent", &[])?;
    if !message.as_str().unwrap_or_default().contains("unclassified") {
        return Err(format!("the page of dark matter shows {message}").into());
    }
    browser.click("#view-time")?;
    browser.run("$('every').value = '1'; $('every').dispatchEvent(new Event('change'))", &[])?;
    browser.wait("document.querySelectorAll('.chart .dot').length >= 5")?;
    browser.run("$('every').value = ''; $('every').dispatchEvent(new Event('change'))", &[])?;
    let cookie = browser.run("return document.cookie", &[])?;
    if cookie != "" {
        return Err("the page can read its cookie".into());
    }
    Ok(format!(
        "the cache fell from {before} bytes to {after}; saved, compared, dark matter shown, followed in time"
    ))
}

/// Returns the only file of the folder, once it is complete.
fn downloaded(folder: &Path) -> Result<std::path::PathBuf, Failure> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        let files: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
        if let [file] = &files[..]
            && file.extension().is_some_and(|ending| ending == "gz")
        {
            return Ok(file.clone());
        }
        sleep(Duration::from_millis(50));
    }
    Err("nothing was saved within 30 seconds".into())
}
