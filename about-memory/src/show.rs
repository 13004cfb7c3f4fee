//! `about-memory FILE…` and `about-memory diff A B`.

use crate::cli::{Color, DiffArgs, DisplayArgs, ShowArgs};
use crate::filter::Filter;
use crate::open::{self, Opened};
use crate::page::{File, Page};
use crate::tree::{Least, Settings};
use crate::view::{self, text::Medium};
use std::error::Error;
use std::io::{self, IsTerminal, Write};

/// What a command may fail with.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Shows files.
///
/// # Errors
/// Files that cannot be shown, and those of `out`.
pub fn show(args: &ShowArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), Failure> {
    let settings = settings(&args.display);
    let filter = filter(&args.display, notes)?;
    let mut files = Vec::new();
    let mut sentences = Vec::new();
    for path in &args.files {
        let Opened { mut file, notes } =
            open::open(path, args.input.options(), filter.clone(), &settings)?;
        sentences.extend(notes);
        file.forest.rename_processes_of(&files, &path.display().to_string());
        files.push(file);
    }
    present(&files, &settings, &args.display, sentences, (out, notes))
}

/// Shows what differs between two files.
///
/// # Errors
/// Files that cannot be compared, and those of `out`.
pub fn diff(args: &DiffArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<(), Failure> {
    let settings = Settings { is_diff: true, ..settings(&args.display) };
    let filter = filter(&args.display, notes)?;
    let (before, after) = match (&args.since, &args.second) {
        (Some(since), _) => (since, &args.first),
        (None, Some(second)) => (&args.first, second),
        (None, None) => return Err("name two reports, or one and --since".into()),
    };
    let sides = open::open_two([before, after], args.input.options())?;
    if args.markdown {
        let changes = sides.changes(&filter)?;
        view::markdown::write(&changes, &settings, args.display.process.as_deref(), out)?;
        return write_notes(sides.notes(), args.display.notes, out, notes);
    }
    let Opened { file, notes: sentences } = sides.compare(filter, &settings)?;
    present(&[file], &settings, &args.display, sentences, (out, notes))
}

/// Scripts get every node, unless they ask for less.
fn settings(args: &DisplayArgs) -> Settings {
    let mut settings = args.settings();
    if args.json {
        settings.least = settings.least.or(Some(Least::Amount(0.0)));
    }
    settings
}

fn filter(args: &DisplayArgs, notes: &mut dyn Write) -> Result<Filter, Failure> {
    if !args.regex {
        return Ok(Filter::text(&args.filter));
    }
    let (filter, fault) = Filter::regex(&args.filter);
    if let Some(fault) = fault {
        writeln!(
            notes,
            "note: `{}` is no regular expression, so it matches nothing: {fault}",
            args.filter
        )?;
    }
    Ok(filter)
}

fn present(
    files: &[File],
    settings: &Settings,
    args: &DisplayArgs,
    mut sentences: Vec<String>,
    (out, notes): (&mut dyn Write, &mut dyn Write),
) -> Result<(), Failure> {
    let mut page = Page::new(files, settings);
    page.process = args.process.as_deref();
    if args.json {
        view::json::write(&page, &sentences, out)?;
        return Ok(());
    }
    if args.descriptions {
        view::descriptions::write(&page, out)?;
    } else {
        let unlisted = view::text::write(&page, medium(args.color), out)?;
        sentences.extend(
            unlisted.iter().map(|path| format!("`{path}` is negative or unreasonably large")),
        );
    }
    for file in files {
        sentences.extend(file.forest.lost.iter().map(|name| {
            format!("the measurement `{name}` is not shown: about:memory cannot show one of this name; rename it")
        }));
    }
    write_notes(sentences, args.notes, out, notes)
}

fn write_notes(
    sentences: Vec<String>,
    inside: bool,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Failure> {
    // The report first, should both go to one terminal.
    out.flush()?;
    for sentence in sentences {
        match inside {
            true => writeln!(out, "note: {sentence}")?,
            false => writeln!(notes, "note: {sentence}")?,
        }
    }
    Ok(())
}

fn medium(color: Color) -> Medium {
    let is_terminal = io::stdout().is_terminal();
    let is_coloured = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    };
    Medium { is_coloured, is_terminal }
}
