//! `cargo xtask clients firefox`: a real Firefox and we show generated files with the same bytes.

mod about_memory;
mod cases;
mod corners;

use self::about_memory::{Question, Shown, ask, start};
use crate::failure::Failure;
use crate::scratch::Scratch;
use ::about_memory::{Cli, Context, TerminalText};
pub(crate) use cases::Case;
use clap::Parser;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The options of the check.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Options {
    /// Seed of the random cases
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of random cases, in addition to all corner cases
    #[arg(long, default_value_t = 300)]
    cases: usize,
    /// Save the files and both texts of differing cases in this directory
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Runs the comparison. Returns `false` if anything differs.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let options = Options::try_parse_from(args)?;
    let directory = Scratch::new()?;
    let mut firefox = match start(&directory.0.join("firefox"))? {
        Ok(firefox) => firefox,
        Err(missing) => {
            writeln!(out, "clients firefox: not run: {missing}")?;
            return Ok(true);
        }
    };
    let (mut count, mut refused, mut differences) = (0, 0, 0);
    for case in generated(options.seed, options.cases) {
        let files = case.write(&directory.0)?;
        let question = Question {
            files: &files,
            is_verbose: case.is_verbose,
            filter: &case.filter,
            is_regex: case.is_regex,
        };
        let theirs = ask(&mut firefox, &question)?;
        let ours = ours(&case, &files);
        count += 1;
        refused += usize::from(matches!(theirs, Shown::Refused(_)));
        let Some(difference) = difference(&theirs, &ours) else { continue };
        differences += 1;
        writeln!(out, "{}: {difference}", case.name)?;
        if let Some(kept) = &options.keep {
            keep(&kept.join(&case.name), &files, &theirs, &ours)?;
        }
    }
    writeln!(
        out,
        "clients firefox: {count} cases ({refused} refused by both), {differences} differences"
    )?;
    Ok(differences == 0)
}

/// Returns whether a real Firefox shows this file exactly as we do. Without a Firefox, prints that
/// the check did not run.
pub(crate) fn shows_as_we_do(file: &Path, out: &mut dyn Write) -> Result<bool, Failure> {
    let mut firefox = match start(&file.with_extension("firefox"))? {
        Ok(firefox) => firefox,
        Err(missing) => {
            writeln!(out, "clients snapshot: not run: {missing}")?;
            return Ok(true);
        }
    };
    let files = vec![file.to_owned()];
    let question = Question { files: &files, is_verbose: true, filter: "", is_regex: false };
    let theirs = ask(&mut firefox, &question)?;
    drop(firefox);
    let mut ours = Vec::new();
    let cli =
        Cli::try_parse_from(["about-memory".as_ref(), file.as_os_str(), "--verbose".as_ref()])?;
    cli.run(&mut Context::new(&mut ours, &mut Vec::new())).map_err(|error| error.to_string())?;
    let difference = difference(&theirs, &Ok(String::from_utf8(ours)?));
    match &difference {
        Some(difference) => writeln!(out, "clients snapshot: {difference}")?,
        None => {
            writeln!(out, "clients snapshot: Firefox shows our snapshot as we do, to the byte")?;
        }
    }
    Ok(difference.is_none())
}

/// Returns all corner cases, and `count` cases generated from a seed.
pub(crate) fn generated(seed: u64, count: usize) -> impl Iterator<Item = Case> {
    corners::all().into_iter().chain(cases::random(seed, count))
}

/// Returns the output of our command line, or its error.
pub(crate) fn ours(case: &Case, files: &[PathBuf]) -> Result<String, Failure> {
    let mut words = vec!["about-memory".to_owned()];
    if files.len() > 1 {
        words.push("diff".into());
    }
    words.extend(files.iter().map(|file| file.display().to_string()));
    if case.is_verbose {
        words.push("--verbose".into());
    }
    if !case.filter.is_empty() {
        words.push(format!("--filter={}", case.filter));
        words.extend(case.is_regex.then(|| "--regex".to_owned()));
    }
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let cli = Cli::try_parse_from(words)?;
    cli.run(&mut Context::new(&mut out, &mut notes)).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out)?)
}

/// Returns text as our command line writes it: without characters that a terminal acts on.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    // A vector takes all bytes.
    let _ = TerminalText::new(&mut out).write_all(text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// Describes the first difference.
fn difference(theirs: &Shown, ours: &Result<String, Failure>) -> Option<String> {
    match (theirs, ours) {
        (Shown::Refused(_), Err(_)) => None,
        (Shown::Refused(words), Ok(_)) => Some(format!("Firefox refuses ({words}), we show it")),
        // In Firefox, an invalid regular expression matches nothing; we refuse it.
        (Shown::Text(_), Err(error)) if error.to_string().contains("is no regular expression") => {
            None
        }
        (Shown::Text(_), Err(error)) => Some(format!("Firefox shows it, we refuse ({error})")),
        (Shown::Text(theirs), Ok(ours)) if escaped(theirs) == *ours => None,
        (Shown::Text(theirs), Ok(ours)) => {
            let theirs = escaped(theirs);
            let (mut their_lines, mut our_lines) = (theirs.lines(), ours.lines());
            for number in 1.. {
                let (their, our) = (their_lines.next(), our_lines.next());
                if their != our {
                    return Some(format!(
                        "line {number}\n  Firefox: {their:?}\n  we:      {our:?}"
                    ));
                }
                if their.is_none() {
                    break;
                }
            }
            Some("only the line ends differ".into())
        }
    }
}

fn keep(
    directory: &Path,
    files: &[PathBuf],
    theirs: &Shown,
    ours: &Result<String, Failure>,
) -> Result<(), Failure> {
    fs::create_dir_all(directory)?;
    for file in files {
        fs::copy(file, directory.join(file.file_name().ok_or("a file without a name")?))?;
    }
    let (Shown::Text(theirs) | Shown::Refused(theirs)) = theirs;
    fs::write(directory.join("firefox.txt"), theirs)?;
    let ours = ours.as_ref().map_or_else(ToString::to_string, Clone::clone);
    fs::write(directory.join("ours.txt"), ours)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_found() {
        let text = |text: &str| Shown::Text(text.to_owned());
        let refused = Shown::Refused("no".into());
        assert_eq!(difference(&text("a\nb\n"), &Ok("a\nb\n".into())), None);
        assert_eq!(difference(&refused, &Err("no".into())), None);
        let invalid = Err("`[` is no regular expression: Unbalanced bracket".into());
        assert_eq!(difference(&text(""), &invalid), None);
        for (theirs, ours, words) in [
            (
                text("a\nb\n"),
                Ok("a\nc\n".to_owned()),
                "line 2\n  Firefox: Some(\"b\")\n  we:      Some(\"c\")",
            ),
            (
                text("a\n"),
                Ok("a\nb\n".to_owned()),
                "line 2\n  Firefox: None\n  we:      Some(\"b\")",
            ),
            (text("a\n"), Ok("a".to_owned()), "only the line ends differ"),
            (text("a\n"), Err("no".into()), "Firefox shows it, we refuse (no)"),
            (refused, Ok("a\n".to_owned()), "Firefox refuses (no), we show it"),
        ] {
            assert_eq!(difference(&theirs, &ours).as_deref(), Some(words));
        }
    }
}
