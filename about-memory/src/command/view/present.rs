//! Prints files in the form that the flags ask for, with their notes.

use crate::command::flags::DisplayArgs;
use crate::context::Context;
use crate::error::Failure;
use crate::render::show::{descriptions, json, text};
use crate::report::page::Page;
use crate::report::report_tree::File;
use crate::report::tree::Settings;

/// Files to print.
pub(super) struct Presented<'f> {
    pub(super) files: &'f [File],
    pub(super) settings: &'f Settings,
    /// Sentences about the collection.
    pub(super) notes: Vec<String>,
}

/// Prints files as text, as JSON or with their descriptions.
pub(super) fn write(
    presented: Presented<'_>,
    args: &DisplayArgs,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let Presented { files, settings, notes: mut sentences } = presented;
    let mut page = Page::new(files, settings);
    page.process = args.process.as_deref();
    if args.json {
        json::write(&page, &sentences, &mut context.out.json())?;
        return Ok(());
    }
    if args.descriptions {
        descriptions::write(&page, &mut context.out)?;
    } else {
        let medium = DisplayArgs::medium(context);
        let unlisted = text::write(&page, medium, &mut context.out.coloured(medium.is_coloured))?;
        sentences.extend(
            unlisted.iter().map(|path| format!("`{path}` is negative or unreasonably large")),
        );
    }
    for file in files {
        sentences.extend(file.report_tree.lost.iter().map(|name| {
            format!("the measurement `{name}` is not shown: about:memory cannot show one of this name; rename it")
        }));
    }
    write_notes(sentences, args.notes, context)
}

/// Prints notes, to the answer if `inside` is set.
pub(super) fn write_notes(
    sentences: Vec<String>,
    inside: bool,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    // The answer comes first if both go to one terminal.
    context.out.flush()?;
    for sentence in sentences {
        let to = if inside { &mut context.out } else { &mut context.notes };
        writeln!(to, "note: {sentence}")?;
    }
    Ok(())
}
