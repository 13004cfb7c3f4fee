//! Defines the errors of building with cargo.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// The reason why no program could be built.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum CargoError {
    /// Cargo cannot be started.
    NoCargo(io::Error),
    /// Cargo failed, and printed the reason.
    Failed(&'static str, ExitStatus),
    /// The output of cargo is not understood.
    Output(&'static str, String),
    /// The workspace has no package of this name.
    NoPackage(String, Vec<String>),
    /// The chosen packages have no such program.
    NoProgram(String),
    /// Several programs are meant.
    ManyPrograms(Vec<String>),
    /// Cargo built no file for this target.
    NothingBuilt(String),
    /// The manifest or a source file cannot be changed.
    Init(PathBuf, String),
}

impl fmt::Display for CargoError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CargoError::NoCargo(_) => out.write_str("cargo cannot be started"),
            CargoError::Failed(what, status) => match status.code() {
                Some(code) => write!(out, "`cargo {what}` failed with exit status {code}"),
                None => write!(out, "`cargo {what}` was ended by a signal"),
            },
            CargoError::Output(what, problem) => {
                write!(out, "the output of `cargo {what}` is not understood: {problem}")
            }
            CargoError::NoPackage(name, others) => {
                write!(out, "the workspace has no package `{name}`; it has {}", others.join(", "))
            }
            CargoError::NoProgram(what) => write!(out, "there is no {what}"),
            CargoError::ManyPrograms(names) => {
                write!(out, "there are several programs; choose one: {}", names.join(", "))
            }
            CargoError::NothingBuilt(name) => {
                write!(out, "cargo built no {name}; does it need features (--features)?")
            }
            CargoError::Init(path, problem) => write!(out, "{}: {problem}", path.display()),
        }
    }
}

impl std::error::Error for CargoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CargoError::NoCargo(error) => Some(error),
            _ => None,
        }
    }
}
