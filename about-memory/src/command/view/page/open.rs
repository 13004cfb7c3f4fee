//! `about-memory page FILE…`: writes a page and opens it in the browser.

use super::build::{self, PageContents};
use crate::context::Context;
use crate::error::Failure;
use clap::Args;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// `about-memory page open`
#[derive(Debug, Args)]
pub struct PageOpenArgs {
    /// The page to write [default: the first file's name with `.html`, in this folder]
    #[arg(short, long, value_name = "PAGE")]
    pub output: Option<PathBuf>,
    /// The files and programs of the page.
    #[command(flatten)]
    pub contents: PageContents,
}

impl PageOpenArgs {
    /// Writes the page, prints its name, and opens it if the answer goes to a terminal of a
    /// desktop.
    ///
    /// # Errors
    /// A file cannot be shown, or the page cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let page = match self.output {
            Some(page) => page,
            None => own_name(self.contents.files.first().ok_or("name a file")?)?,
        };
        let document = self.contents.document(&mut context.notes)?;
        build::write(&document, &page)?;
        writeln!(context.out, "{}", page.display())?;
        if context.terminal.is_some()
            && has_desktop()
            && let Err(error) = open(&page)
        {
            writeln!(context.notes, "note: the browser cannot be started: {error}")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the name of the page of a file: `heap.html` of `heap.dmd.json.gz`.
///
/// # Errors
/// Another file has that name.
fn own_name(file: &Path) -> Result<PathBuf, Failure> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name.strip_suffix(".json").unwrap_or(name);
    let name = name.strip_suffix(".dmd").unwrap_or(name);
    let page = PathBuf::from(format!("{name}.html"));
    match is_page(&page) {
        Ok(false) => Err(format!(
            "{}: this is no page of about-memory, and stays as it is; name another by -o",
            page.display()
        )
        .into()),
        // An error shows when the page is written.
        Ok(true) | Err(_) => Ok(page),
    }
}

/// The bytes that distinguish a page from another file of HTML.
const HEAD: u64 = 4096;

/// Returns whether a file is a page that this program has written.
fn is_page(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(String::from_utf8_lossy(&head).contains("<title>about:memory</title>"))
}

/// Returns whether a browser would have a place to show itself.
fn has_desktop() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(any(target_os = "macos", windows)) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Starts the desktop's program for pages, and does not wait for it.
fn open(page: &Path) -> io::Result<()> {
    let opener = match () {
        () if cfg!(target_os = "macos") => "open",
        () if cfg!(windows) => "explorer",
        () => "xdg-open",
    };
    // With a full path, a name that begins with a hyphen is no option.
    let page = page.canonicalize()?;
    let silent = Stdio::null;
    Command::new(opener)
        .arg(page)
        .stdin(silent())
        .stdout(silent())
        .stderr(silent())
        .spawn()
        .map(drop)
}
