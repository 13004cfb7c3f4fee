//! Defines the errors of starting a program, and describes its end.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::other_process::GO;

/// The reason why a program did not run, or not to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The program does not exist.
    NotFound(OsString),
    /// The program's file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The file is a script, or another file that starts programs.
    NotABinary(PathBuf),
    /// The program was built without DMD.
    NoDmd(PathBuf),
    /// The program has no DMD and no dynamic linker, so nothing can be preloaded.
    Static(PathBuf),
    /// The program is one of Go.
    Go(PathBuf),
    /// The program has no DMD, and its C library is musl.
    Musl(PathBuf),
    /// The program has no DMD, and is for another processor.
    OtherArchitecture(PathBuf),
    /// The program has no DMD, and gets privileges at its start.
    Privileged(PathBuf),
    /// There is no library to preload for this system.
    NoLibrary,
    /// The folder for the snapshots cannot be used.
    Folder(PathBuf, io::Error),
    /// The program cannot be started.
    Start(PathBuf, io::Error),
}

/// The remedy for programs that cannot be tracked from outside.
const DECLARE: &str = ".\nIf it is a Rust program of yours, add memreport-dmd to its dependencies, and dmd::global_allocator!(); to its main.rs";

impl std::fmt::Display for RunError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::NotFound(name) => {
                write!(out, "{}: no such program, here or in $PATH", name.display())
            }
            RunError::Unreadable(path, error) => write!(out, "{}: {error}", path.display()),
            RunError::NotABinary(path) => write!(
                out,
                "{}: not a program but a file that starts one; name the program, or say --wrapper",
                path.display()
            ),
            RunError::Static(path) => write!(
                out,
                "{}: has no DMD, and is statically linked, so that its malloc cannot be replaced{DECLARE}",
                path.display()
            ),
            RunError::Go(path) => write!(out, "{}: cannot be tracked: {GO}", path.display()),
            RunError::Musl(path) => write!(
                out,
                "{}: has no DMD, and its C library is musl; about-memory replaces glibc's malloc only{DECLARE}",
                path.display()
            ),
            RunError::OtherArchitecture(path) => write!(
                out,
                "{}: has no DMD, and is for another processor than about-memory{DECLARE}",
                path.display()
            ),
            RunError::Privileged(path) => write!(
                out,
                "{}: has no DMD, and runs with other privileges than yours (set-user-ID, set-group-ID or file capabilities), so \
                 that the dynamic linker ignores LD_PRELOAD; run it as its owner, or a copy without them",
                path.display()
            ),
            RunError::NoDmd(path) => {
                write!(
                out,
                "{}: this program has no DMD; add it to its dependencies (cargo add memreport-dmd) and this line to its main.rs:\n\n    \
                 dmd::global_allocator!();\n\n(if the program only starts another that has it, say --wrapper)",
                path.display()
                )?;
                match cfg!(feature = "preload") {
                    true => Ok(()),
                    false => out.write_str(
                        "\n(this about-memory was built without its feature `preload`, which tracks programs without DMD)",
                    ),
                }
            }
            RunError::NoLibrary => out.write_str(
                "this about-memory was built without the library to preload: it needs the feature `preload`, Linux with glibc on x86-64 \
                 or AArch64, and the sources beside it",
            ),
            RunError::Folder(path, error) => {
                write!(out, "{}: {error}; name another with --output", path.display())
            }
            RunError::Start(path, error) => {
                write!(out, "{}: cannot be started: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Unreadable(_, error)
            | RunError::Folder(_, error)
            | RunError::Start(_, error) => Some(error),
            RunError::NotFound(_)
            | RunError::NotABinary(_)
            | RunError::NoDmd(_)
            | RunError::NoLibrary
            | RunError::Static(_)
            | RunError::Go(_)
            | RunError::Musl(_)
            | RunError::OtherArchitecture(_)
            | RunError::Privileged(_) => None,
        }
    }
}

/// The end of a program that failed.
#[derive(Debug)]
pub(crate) struct BadEnd {
    /// A sentence for people.
    pub(crate) sentence: String,
    /// The exit status to pass on.
    pub(crate) code: u8,
}

/// Describes the end of a program; `None` if it succeeded.
#[must_use]
pub(crate) fn describe_end(status: ExitStatus) -> Option<BadEnd> {
    use std::os::unix::process::ExitStatusExt;
    if status.success() {
        return None;
    }
    let (sentence, code) = match (status.code(), status.signal()) {
        (Some(code), _) => {
            (format!("the program ended with exit code {code}"), u8::try_from(code).unwrap_or(1))
        }
        (None, Some(signal)) => {
            let code = u8::try_from(128 + signal).unwrap_or(255);
            (format!("the program was ended by signal {signal}"), code)
        }
        (None, None) => ("the program ended for an unknown reason".to_owned(), 1),
    };
    Some(BadEnd { sentence, code })
}
