//! `about-memory html FILE… -o PAGE`: one page that shows reports in any browser, offline.

pub(crate) mod document;
pub(crate) mod findings;
pub(crate) mod moment;
mod reports;

use crate::cli::InputArgs;
use crate::show::{Failure, told};
use clap::Args;
use document::Document;
use moment::Moment;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// `about-memory html`
#[derive(Debug, Args)]
pub struct HtmlArgs {
    /// Memory reports, the oldest first; a DMD dump that lies beside one is shown with it
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The page to write; it needs no other file and no network
    #[arg(short, long, value_name = "PAGE")]
    pub output: PathBuf,
    /// How files are read.
    #[command(flatten)]
    pub input: InputArgs,
}

/// Up to so many moments, the difference of any two is in the page.
const ALL_PAIRS: usize = 6;

/// Writes the page; remarks go to `notes`.
///
/// # Errors
/// Files that cannot be shown, and a page that cannot be written.
pub fn main(args: &HtmlArgs, notes: &mut dyn Write) -> Result<(), Failure> {
    let mut moments = Vec::new();
    for path in &args.files {
        moments.push(Moment::of_file(path, args.input.options())?);
    }
    let mut document = Document::offline(&moments);
    let all: Vec<&Moment> = moments.iter().collect();
    for (index, moment) in moments.iter().enumerate() {
        document.embed(format!("moments/{index}/reports"), &moment.reports()?)?;
        if let Some(found) = findings::find(&all, index) {
            for note in &found.notes {
                writeln!(notes, "about-memory: {note}")?;
            }
            document.embed(format!("moments/{index}/findings"), &found.json)?;
        }
    }
    for (first, second) in pairs(moments.len()) {
        match moment::difference(&moments[first], &moments[second]) {
            Ok(json) => document.embed(format!("differences/{first}/{second}"), &json)?,
            // The trees of both are there all the same.
            Err(error) => writeln!(
                notes,
                "about-memory: {} and {} are not compared: {}",
                moments[first].name,
                moments[second].name,
                told(&*error)
            )?,
        }
    }
    let written = File::create(&args.output).and_then(|file| {
        let mut file = BufWriter::new(file);
        document.write(&mut file).and_then(|()| file.flush())
    });
    written.map_err(|error| format!("{}: cannot be written: {error}", args.output.display()).into())
}

/// Which moments are compared, each with a later one: all pairs of a few; of many, neighbours and the first with the last.
fn pairs(count: usize) -> Vec<(usize, usize)> {
    let all = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, second)));
    all.filter(|&(first, second)| {
        count <= ALL_PAIRS || second == first + 1 || (first == 0 && second + 1 == count)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_moments_neighbours_are_compared() {
        assert_eq!(pairs(1), []);
        assert_eq!(pairs(3), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(pairs(6).len(), 15);
        assert_eq!(pairs(8).len(), 8);
    }
}
