//! A real Prometheus scrapes our programs over HTTP, and its queries must return their numbers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::http;
use super::service;
use super::service::Service;
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The longest wait. Prometheus starts in a second or two, and scrapes each second.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Values by name and labels, such as `name{kind="hard"}`.
type Series = BTreeMap<String, f64>;

/// A child process that ends with the check.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns whether Prometheus and its tool agree with us.
///
/// # Errors
///
/// If a program cannot be started or does not respond.
pub(crate) fn run(out: &mut dyn Write) -> Result<bool, Failure> {
    if !is_installed("prometheus") {
        writeln!(out, "clients prometheus: not run: there is no prometheus on the path")?;
        return Ok(true);
    }
    let scratch = Scratch::new()?;
    let folder = &scratch.0;
    Ok(minimal(folder, out)? & service(folder, out)?)
}

/// Checks a program that always serves the same text: Prometheus has each of its numbers.
fn minimal(folder: &Path, out: &mut dyn Write) -> Result<bool, Failure> {
    let subject = build::release("memreport-tests", "metrics")?;
    let mut subject = Running(
        Command::new(subject)
            .env_remove("DMD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let message = subject.0.stdout.take().ok_or("it has an output")?;
    let mut address = String::new();
    BufReader::new(message).read_line(&mut address)?;
    let address = address.trim();
    let text = http::get(address, "/metrics")?;
    let ours = series(&text);
    let theirs = scrape(address, &ours, folder)?;
    let differing: Vec<_> =
        ours.iter().filter(|(name, value)| theirs.get(*name) != Some(value)).collect();
    for (name, value) in &differing {
        writeln!(out, "{name} is {value} here and {:?} there", theirs.get(*name))?;
    }
    writeln!(
        out,
        "clients prometheus: {} of {} series are the same in Prometheus",
        ours.len() - differing.len(),
        ours.len()
    )?;
    let held = differing.is_empty() && theirs.len() == ours.len() && ours.len() > 10;
    Ok(held & tool_agrees(&text, out)?)
}

/// The number of pages that the service keeps in the check.
const PAGES: u32 = 2000;

/// The bytes of their blocks, without the vector that holds them.
const LEAST: f64 = 2000.0 * 4104.0;

/// Checks the example service with DMD asleep and awake.
///
/// Its figures change between scrapes, but Prometheus has the same series, and the exact bytes of
/// the pages.
fn service(folder: &Path, out: &mut dyn Write) -> Result<bool, Failure> {
    let program = service::build()?;
    let mut held = true;
    for variable in ["", "--mode=profile"] {
        let service = Service::start(&program, variable)?;
        service.get(&format!("/pages/{PAGES}"))?;
        let text = service.get("/metrics")?;
        let ours = series(&text);
        let theirs = scrape(&service.address, &ours, folder)?;
        let pages = key(
            "memreport_reported_bytes",
            &BTreeMap::from([("path", "explicit/pages"), ("kind", "heap")]),
        );
        let [here, there] = [&ours, &theirs].map(|series| series.get(&pages).copied());
        let is_all_there = ours.keys().eq(theirs.keys());
        let are_pages = here >= Some(LEAST) && here == there;
        writeln!(
            out,
            "clients prometheus: the service with DMD={variable:?}: {} series here, {} in Prometheus, {}; \
             pages: {} bytes here, {} there",
            ours.len(),
            theirs.len(),
            if is_all_there { "the same" } else { "OTHERS" },
            here.unwrap_or(0.0),
            there.unwrap_or(0.0)
        )?;
        held &= is_all_there && are_pages && tool_agrees(&text, out)?;
    }
    Ok(held)
}

fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns the series of a program in a fresh Prometheus in `folder`, once all have been scraped.
fn scrape(address: &str, ours: &Series, folder: &Path) -> Result<Series, Failure> {
    let folder = folder.join(address);
    fs::create_dir_all(&folder)?;
    let configuration = folder.join("prometheus.yml");
    fs::write(
        &configuration,
        format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: memreport, static_configs: [{{targets: ['{address}']}}]}}]\n"
        ),
    )?;
    // The port is free now, and another process is unlikely to take it within a second.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let _prometheus = Running(
        Command::new("prometheus")
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={port}"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log"))?)
            .spawn()?,
    );
    let end = Instant::now() + TIMEOUT;
    loop {
        match scraped(&port.to_string()) {
            Ok(theirs) if theirs.len() >= ours.len() => return Ok(theirs),
            _ if Instant::now() > end => {
                let log = fs::read_to_string(folder.join("log"))?;
                return Err(format!("prometheus has not scraped us in a minute:\n{log}").into());
            }
            _ => thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Returns all series of our job in Prometheus, except those that it adds itself.
fn scraped(prometheus: &str) -> Result<Series, Failure> {
    let query =
        "/api/v1/query?query=%7Bjob%3D%22memreport%22%2C__name__%21~%22up%7Cscrape_.*%22%7D";
    let answer: Value = serde_json::from_str(&http::get(prometheus, query)?)?;
    let result = answer["data"]["result"].as_array().ok_or("it is no answer")?;
    let of = |sample: &Value| {
        let labels = sample["metric"].as_object()?;
        let own = |(name, _): &(&String, &Value)| {
            !["__name__", "instance", "job"].contains(&name.as_str())
        };
        let labels: BTreeMap<&str, &str> = labels
            .iter()
            .filter(own)
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let name = sample["metric"]["__name__"].as_str()?;
        Some((key(name, &labels), sample["value"][1].as_str()?.parse().ok()?))
    };
    Ok(result.iter().filter_map(of).collect())
}

fn key(name: &str, labels: &BTreeMap<&str, &str>) -> String {
    format!("{name}{labels:?}")
}

/// Parses the series of a text, independently of the code that wrote it.
fn series(text: &str) -> Series {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let of = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, inside) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels(inside.strip_suffix('}')?);
        let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Some((key(name, &labels), value.parse().ok()?))
    };
    lines.filter_map(of).collect()
}

/// Parses `a="x",b="y"`, where a backslash escapes the next character.
fn labels(mut text: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    while let Some((name, rest)) = text.split_once("=\"") {
        let mut value = String::new();
        let mut letters = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
                _ => value.push(letter),
            }
        }
        labels.push((name.trim_start_matches(',').to_owned(), value));
        text = &rest[end..];
    }
    labels
}

/// Runs `promtool check metrics`.
///
/// It supports only the older text format, in which a counter's name has no suffix, so it reports
/// missing help of counters. It may report nothing else.
fn tool_agrees(text: &str, out: &mut dyn Write) -> Result<bool, Failure> {
    if !is_installed("promtool") {
        writeln!(out, "clients prometheus: not run: there is no promtool on the path")?;
        return Ok(true);
    }
    let mut tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    tool.stdin.take().ok_or("it has an input")?.write_all(text.as_bytes())?;
    let output = tool.wait_with_output()?;
    let message = [output.stdout, output.stderr].concat();
    let message = String::from_utf8_lossy(&message);
    let is_known = |line: &str| line.contains("_total") && line.contains("help");
    let others: Vec<_> =
        message.lines().filter(|line| !line.trim().is_empty() && !is_known(line)).collect();
    writeln!(
        out,
        "clients prometheus: promtool complains of {} things, {} of them not known",
        message.lines().count(),
        others.len()
    )?;
    for line in &others {
        writeln!(out, "  {line}")?;
    }
    Ok(others.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_with_its_labels() {
        let text = "# HELP a x\na 1\nb_total{kind=\"x y\",path=\"c\\\"d\\\\\"} 2.5\n# EOF\n";
        let expected = [
            (key("a", &BTreeMap::new()), 1.0),
            (key("b_total", &BTreeMap::from([("kind", "x y"), ("path", "c\"d\\")])), 2.5),
        ];
        assert_eq!(series(text), BTreeMap::from(expected));
    }
}
