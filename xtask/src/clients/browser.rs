//! `cargo xtask clients browser`: the page in a real Chromium.
//!
//! It shows the text of the command line to the byte. It folds, filters, compares, and measures a
//! running program. None of its data leaves the machine.

mod heap;
mod look;
mod pages;
mod pictures;
mod scripts;
mod served;
mod session;
mod views;

use clap::Parser;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::chromium;
use super::chromium::Browser;
use super::firefox;
use crate::build;
use crate::failure::Failure;

/// The options of the check.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Options {
    /// Seed of the random cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of random cases, in addition to all corner cases
    #[arg(long, default_value_t = 100)]
    cases: usize,
    /// Run only the checks with this word in their name, without the cases
    #[arg(long)]
    only: Option<String>,
    /// Write screenshots of the page to this folder: for the README and the guide
    #[arg(long)]
    pictures: Option<PathBuf>,
    /// Write screenshots of all views instead, at several widths, light and dark
    #[arg(long, requires = "pictures")]
    every: bool,
}

/// The state that all checks share.
struct Bench {
    browser: Browser,
    folder: PathBuf,
    about_memory: PathBuf,
}

type Check = (&'static str, fn(&Bench) -> Result<String, Failure>);

const CHECKS: [Check; 17] = [
    ("the scripts' own tests", scripts::tests),
    ("the scripts' types", scripts::types),
    ("what is unfolded stays so", pages::folding),
    ("the keyboard leads everywhere", pages::keyboard),
    ("filters and switches act at once", pages::switches),
    ("the program's reporters stay in sight", pages::reporters),
    ("what is copied is what is printed", pages::copying),
    ("files are opened on the page", pages::opened),
    ("100,000 reports are quick", pages::many),
    ("the treemap", look::areas),
    ("resident memory is explained", look::resident),
    ("sums of all views", views::sums),
    ("the table is driven by keys", views::table),
    ("assistive programs", views::accessibility),
    ("heap details", heap::details),
    ("light and dark", look::schemes),
    ("a running program is measured and minimized", served::program),
];

/// Runs all checks. Returns `false` when one fails.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let options = Options::try_parse_from(args)?;
    let programs = match chromium::find() {
        Ok(programs) => programs,
        Err(missing) => {
            writeln!(out, "clients browser: not run: {missing}")?;
            return Ok(true);
        }
    };
    let folder = std::env::temp_dir().join(format!("xtask-browser-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let bench = Bench {
        browser: Browser::start(&programs, &folder)?,
        about_memory: build::debug("about-memory", "about-memory")?,
        folder: folder.clone(),
    };
    let mut holds = true;
    if let Some(pictures) = &options.pictures {
        pictures::write(&bench, pictures, options.every)?;
    } else {
        let is_wanted = |name: &str| options.only.as_deref().is_none_or(|word| name.contains(word));
        if options.only.is_none() {
            holds &= cases(&bench, &options, out)?;
        }
        for (name, check) in CHECKS.into_iter().filter(|(name, _)| is_wanted(name)) {
            match check(&bench).and_then(|result| bench.quiet().map(|()| result)) {
                Ok(result) => writeln!(out, "clients browser: {name}: {result}")?,
                Err(error) => {
                    writeln!(out, "clients browser: {name}: FAILED: {error}")?;
                    holds = false;
                }
            }
        }
    }
    drop(bench);
    fs::remove_dir_all(&folder)?;
    Ok(holds)
}

/// Compares the page with the command line for every generated file.
fn cases(bench: &Bench, options: &Options, out: &mut dyn Write) -> Result<bool, Failure> {
    let (mut count, mut refused, mut alone, mut differences) = (0, 0, 0, 0);
    for case in firefox::generated(options.seed, options.cases) {
        let files = case.write(&bench.folder)?;
        let printed = firefox::ours(&case, &files);
        // The page keeps characters that only a terminal acts on.
        let shown = pages::case(bench, &case, &files)?.map(|text| firefox::escaped(&text));
        count += 1;
        match (&printed, &shown) {
            (Err(_), None) => refused += 1,
            (Ok(printed), Some(shown)) if printed == shown => {}
            // A page shows both files of a pair, even one that can be compared but not shown.
            (Ok(_), None) if files.iter().any(|file| is_refused_alone(&case, file)) => alone += 1,
            _ => {
                differences += 1;
                let first = first_difference(printed.as_deref().ok(), shown.as_deref());
                writeln!(out, "{}: {first}", case.name)?;
            }
        }
    }
    bench.quiet()?;
    writeln!(
        out,
        "clients browser: {count} cases ({refused} refused by both, {alone} of a file that cannot be shown), \
         {differences} differences"
    )?;
    Ok(differences == 0)
}

fn is_refused_alone(case: &firefox::Case, file: &Path) -> bool {
    let plain = firefox::Case { filter: String::new(), is_regex: false, ..case.clone() };
    firefox::ours(&plain, &[file.to_owned()]).is_err()
}

fn first_difference(printed: Option<&str>, shown: Option<&str>) -> String {
    let (Some(printed), Some(shown)) = (printed, shown) else {
        return format!("printed: {}, on the page: {}", printed.is_some(), shown.is_some());
    };
    let mut lines = (1..).zip(printed.lines().zip(shown.lines()));
    lines.find(|(_, (printed, shown))| printed != shown).map_or_else(
        || "one is longer than the other".into(),
        |(number, (printed, shown)): (usize, _)| {
            format!("line {number}\n  printed:     {printed:?}\n  on the page: {shown:?}")
        },
    )
}

impl Bench {
    /// Runs about-memory to write a page of these files, and returns the page's address.
    fn page(&self, files: &[PathBuf]) -> Result<Option<String>, Failure> {
        let page = self.folder.join("page.html");
        let mut html = std::process::Command::new(&self.about_memory);
        let output = html.arg("html").args(files).arg("-o").arg(&page).output()?;
        Ok(output.status.success().then(|| format!("file://{}", page.display())))
    }

    /// Opens an address and waits until the page is drawn.
    fn open(&self, address: &str) -> Result<(), Failure> {
        // A change of the fragment alone does not reload the page.
        self.browser.open("about:blank")?;
        self.browser.open(address)?;
        self.drawn()
    }

    /// Opens an address with empty session storage.
    fn open_afresh(&self, address: &str) -> Result<(), Failure> {
        self.open(address)?;
        self.browser.run("sessionStorage.clear()", &[])?;
        self.open(address)
    }

    /// Waits until the chosen view is drawn.
    fn drawn(&self) -> Result<(), Failure> {
        self.browser.wait("document.body.dataset.drawn && !panel.hasAttribute('aria-busy')")
    }

    /// Returns the text that the clipboard receives after "select all" and "copy".
    fn copied(&self) -> Result<String, Failure> {
        let copied = self.browser.run(include_str!("browser/copy.js"), &[])?;
        Ok(copied.as_str().ok_or("nothing was copied")?.to_owned())
    }

    /// Returns the output of the command line.
    fn printed(&self, args: &[&str]) -> Result<String, Failure> {
        let output = std::process::Command::new(&self.about_memory).args(args).output()?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Fails if the page has logged an error, or requested anything but its own file or server.
    fn quiet(&self) -> Result<(), Failure> {
        if let Some(complaint) = self.browser.log("browser")?.first() {
            return Err(format!("the page complains: {complaint}").into());
        }
        for entry in self.browser.log("performance")? {
            let entry: serde_json::Value = serde_json::from_str(&entry)?;
            let message = &entry["message"];
            let is_request = message["method"] == "Network.requestWillBeSent";
            let url = message["params"]["request"]["url"].as_str().unwrap_or_default();
            let own = ["file:///", "http://127.0.0.1:", "data:", "about:", "blob:"];
            if is_request && !own.iter().any(|own| url.starts_with(own)) {
                return Err(format!("the page has requested {url}").into());
            }
        }
        Ok(())
    }
}

fn expect_equal(what: &str, printed: &str, shown: &str) -> Result<(), Failure> {
    if printed == shown {
        return Ok(());
    }
    Err(format!("{what}: {}", first_difference(Some(printed), Some(shown))).into())
}

/// Writes a large report to a file.
fn sample(folder: &Path, name: &str, scale: i64) -> Result<PathBuf, Failure> {
    let file = folder.join(name);
    fs::write(&file, pages::program(scale).to_string())?;
    Ok(file)
}
