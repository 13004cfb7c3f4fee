//! Firefox's own page about memory.

use serde_json::json;
use std::path::{Path, PathBuf};

use crate::clients::webdriver::marionette::{self, Marionette};
use crate::failure::Failure;

/// Firefox's response to a file.
#[derive(Debug)]
pub(crate) enum Shown {
    /// The text of the page.
    Text(String),
    /// The error message.
    Refused(String),
}

/// A request to show one file, or to compare two.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) is_verbose: bool,
    pub(crate) filter: &'a str,
    pub(crate) is_regex: bool,
}

/// The first version that is known to show the sum of resident memory, as we do; 140 does not.
const FIRST_VERSION: u32 = 153;

/// Starts the installed Firefox. Returns the reason if there is none that shows what we show.
pub(crate) fn start(folder: &Path) -> Result<Result<Marionette, String>, Failure> {
    let program = match marionette::find() {
        Ok(program) => program,
        Err(missing) => return Ok(Err(missing)),
    };
    let mut firefox = Marionette::start(&program, folder)?;
    let version = firefox.version()?;
    let number: u32 = version.split('.').next().unwrap_or_default().parse()?;
    Ok(if number < FIRST_VERSION {
        Err(format!("Firefox {version} shows no sum of resident memory; {FIRST_VERSION} does"))
    } else {
        Ok(firefox)
    })
}

/// Shows the files of a question on about:memory.
pub(crate) fn ask(firefox: &mut Marionette, question: &Question<'_>) -> Result<Shown, Failure> {
    let wish = json!({
        "files": question.files,
        "verbose": question.is_verbose,
        "filter": question.filter,
        "regex": question.is_regex,
    });
    let answer = firefox.run_in_browser(include_str!("page.js"), &[wish])?;
    let field = |key: &str| answer[key].as_str().map(str::to_owned);
    match (field("text"), field("refused"), field("trouble")) {
        (Some(text), ..) => Ok(Shown::Text(text)),
        (_, Some(words), _) => Ok(Shown::Refused(words)),
        (.., Some(trouble)) => Err(format!("Firefox: {trouble}").into()),
        _ => Err(format!("Firefox answered {answer}").into()),
    }
}
