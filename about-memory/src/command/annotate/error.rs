//! Defines the reasons why there is no patch, each with the remedy.

use std::path::PathBuf;
use std::{error, fmt};

/// The reason why a program's source cannot be annotated.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum AnnotateError {
    /// The dump has no words of blocks.
    NotScan(PathBuf),
    /// The dump does not name a program.
    NoProgram(PathBuf),
    /// The program has no debug information with types.
    NoTypes(PathBuf),
    /// Everything is reported.
    NothingUnreported,
    /// No part of what is unreported belongs to the program's own statics or fields.
    NothingToChange(String),
    /// None of the program's crates is in this workspace.
    OtherSource(String, PathBuf),
    /// Cargo failed, or the source cannot be found.
    Cargo(String),
    /// The copy does not compile, also without the patch.
    DoesNotCompile(String),
    /// A file cannot be read or written.
    File(PathBuf, std::io::Error),
    /// The copy of the workspace cannot be made.
    Copy(std::io::Error),
    /// Files are newer than the program.
    Newer(Vec<PathBuf>),
}

impl fmt::Display for AnnotateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnnotateError::NotScan(path) => write!(
                out,
                "{}: the dump does not say what points at what; take one with DMD=--mode=scan",
                path.display()
            ),
            AnnotateError::NoProgram(path) => {
                write!(
                    out,
                    "{}: the dump does not name its program; take one by DMD",
                    path.display()
                )
            }
            AnnotateError::NoTypes(program) => write!(
                out,
                "{}: no types are known, as it is gone, was built anew, or has no debug information; build it with \
                 debug = true in its profile, and take a new dump (--symbols DIR finds it elsewhere)",
                program.display()
            ),
            AnnotateError::NothingUnreported => {
                out.write_str("nothing to annotate: reporters cover the whole heap")
            }
            AnnotateError::NothingToChange(reason) => {
                write!(out, "nothing to annotate: {reason}")
            }
            AnnotateError::OtherSource(program, root) => write!(
                out,
                "{} has no type or static of {program}; run this in the program's workspace, or name its Cargo.toml with \
                 --manifest-path",
                root.display()
            ),
            AnnotateError::Cargo(text) => out.write_str(text),
            AnnotateError::DoesNotCompile(message) => write!(
                out,
                "the program does not compile, also without the patch: {message}; `cargo check` shows more"
            ),
            AnnotateError::File(path, _) => write!(out, "{}", path.display()),
            AnnotateError::Copy(_) => {
                out.write_str("the copy of the workspace, in its target folder")
            }
            AnnotateError::Newer(files) => {
                let names: Vec<String> =
                    files.iter().map(|file| file.display().to_string()).collect();
                write!(
                    out,
                    "nothing is written, because {} changed after the program was built; build it, take a new dump, and \
                     annotate that",
                    names.join(", ")
                )
            }
        }
    }
}

impl error::Error for AnnotateError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            AnnotateError::File(_, error) | AnnotateError::Copy(error) => Some(error),
            _ => None,
        }
    }
}
