//! `cargo xtask clients browser`: the page in a real Chromium and a real Firefox.
//!
//! It shows the text of the command line to the byte. It folds, filters, compares, and measures a
//! running program. None of its data leaves the machine.

mod big;
mod heap;
mod look;
mod pages;
mod pictures;
mod scripts;
mod served;
mod session;
mod views;

use clap::{Parser, ValueEnum};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::firefox;
use super::webdriver::{self, Browser, Remote, chromium, marionette};
use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

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
    /// Run the checks in this browser only
    #[arg(long = "in", value_enum)]
    browser: Option<Kind>,
    /// Write screenshots of the page to this folder: for the README and the guide
    #[arg(long)]
    pictures: Option<PathBuf>,
    /// Write screenshots of all views instead, at several widths, light and dark
    #[arg(long, requires = "pictures")]
    every: bool,
}

/// A browser that the page is driven in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Chromium,
    Firefox,
}

impl Kind {
    /// Returns how to start it, or the name of the missing program.
    fn starter(self) -> Result<Box<Starter>, String> {
        Ok(match self {
            Kind::Chromium => {
                let programs = chromium::find()?;
                Box::new(move |folder| chromium::start(&programs, folder))
            }
            Kind::Firefox => {
                let program = marionette::find()?;
                Box::new(move |folder| webdriver::firefox::start(&program, folder))
            }
        })
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Chromium => "Chromium",
            Kind::Firefox => "Firefox",
        }
    }
}

/// Starts a browser that writes only below the folder.
type Starter = dyn FnOnce(&Path) -> Result<Box<dyn Remote>, Failure>;

/// The state that all checks share.
struct Bench {
    kind: Kind,
    browser: Browser,
    folder: PathBuf,
    about_memory: PathBuf,
}

type Check = (&'static str, fn(&Bench) -> Result<String, Failure>);

/// Checks without a browser: they run once, with Chromium's.
const OF_SCRIPTS: [Check; 2] =
    [("the scripts' own tests", scripts::tests), ("the scripts' types", scripts::types)];

const CHECKS: [Check; 18] = [
    ("what is unfolded stays so", pages::folding),
    ("the keyboard leads everywhere", pages::keyboard),
    ("filters and switches act at once", pages::switches),
    ("the program's reporters stay in sight", pages::reporters),
    ("what is copied is what is printed", pages::copying),
    ("files are opened on the page", pages::opened),
    ("100,000 reports are quick", big::reports),
    ("300,000 stacks are quick", big::stacks),
    ("the treemap", look::areas),
    ("resident memory is explained", look::resident),
    ("sums of all views", views::sums),
    ("an item leads on to its blocks and owners", views::links),
    ("the table is driven by keys", views::table),
    ("assistive programs", views::accessibility),
    ("heap details", heap::details),
    ("a dump alone opens on its flame graph", heap::alone),
    ("light and dark", look::schemes),
    ("a running program is measured and minimized", served::program),
];

/// Runs all checks. Returns `false` when one fails.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let options = Options::try_parse_from(args)?;
    let mut holds = true;
    for kind in [Kind::Chromium, Kind::Firefox] {
        let is_wanted = options.browser.is_none_or(|wanted| wanted == kind);
        let is_of_pictures = options.pictures.is_none() || kind == Kind::Chromium;
        if is_wanted && is_of_pictures {
            holds &= run_in(kind, &options, out)?;
        }
    }
    Ok(holds)
}

/// Runs all checks in one browser. Returns `false` when one fails.
fn run_in(kind: Kind, options: &Options, out: &mut dyn Write) -> Result<bool, Failure> {
    let name = kind.name();
    let start = match kind.starter() {
        Ok(start) => start,
        Err(missing) => {
            writeln!(out, "clients browser: {name}: not run: {missing}")?;
            return Ok(true);
        }
    };
    let folder = Scratch::new()?;
    let bench = Bench {
        kind,
        browser: Browser::start(&folder.0, start)?,
        about_memory: build::debug("about-memory", "about-memory")?,
        folder: folder.0.clone(),
    };
    if let Some(pictures) = &options.pictures {
        pictures::write(&bench, pictures, options.every)?;
        return Ok(true);
    }
    let mut holds = true;
    let is_wanted = |name: &str| options.only.as_deref().is_none_or(|word| name.contains(word));
    if options.only.is_none() {
        holds &= cases(&bench, options, out)?;
    }
    let of_scripts: &[Check] = if kind == Kind::Chromium { &OF_SCRIPTS } else { &[] };
    for (what, check) in of_scripts.iter().chain(&CHECKS).filter(|(what, _)| is_wanted(what)) {
        match check(&bench).and_then(|result| bench.quiet().map(|()| result)) {
            Ok(result) => writeln!(out, "clients browser: {name}: {what}: {result}")?,
            Err(error) => {
                writeln!(out, "clients browser: {name}: {what}: FAILED: {error}")?;
                holds = false;
            }
        }
    }
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
        "clients browser: {}: {count} cases ({refused} refused by both, {alone} of a file that cannot be shown), \
         {differences} differences",
        bench.kind.name()
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
        if let Some(complaint) = self.browser.complaints()?.first() {
            return Err(format!("the page complains: {complaint}").into());
        }
        let own = ["file:///", "http://127.0.0.1:", "data:", "about:", "blob:"];
        let is_foreign = |url: &&String| !own.iter().any(|own| url.starts_with(own));
        match self.browser.requests()?.iter().find(is_foreign) {
            Some(url) => Err(format!("the page has requested {url}").into()),
            None => Ok(()),
        }
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
