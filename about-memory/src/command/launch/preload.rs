//! The library that tracks programs without DMD, and its file for the dynamic linker.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use clap::Args;
use memreport::__private::PrivateFile;
#[cfg(target_os = "linux")]
use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

use super::error::RunError;
use crate::context::Context;
use crate::error::Failure;

/// The library, built with this program; empty where it cannot be built.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libdmd_preload.so"));

/// Returns whether this program contains the library.
pub(crate) fn is_available() -> bool {
    !LIBRARY.is_empty()
}

/// Returns the library, if this program contains it.
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(dead_code, reason = "for running processes")
)]
pub(crate) fn library() -> Option<&'static [u8]> {
    is_available().then_some(LIBRARY)
}

/// `about-memory preload`
#[derive(Debug, Args)]
#[command(after_help = "\
For programs that something else starts:

    LD_PRELOAD=/usr/local/lib/libdmd_preload.so DMD=--mode=profile PROGRAM

The program then has a socket, so that ps, snapshot, track and the other commands reach it, and obeys $MEMREPORT_SAVE and \
$MEMREPORT_RECORD. Programs inherit LD_PRELOAD from the ones that start them; $MEMREPORT_CHILD_OF=PID restricts tracking to the \
children of one process. A program that declares DMD itself is left alone.")]
pub struct PreloadArgs {
    /// Write the library to this file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl PreloadArgs {
    /// Writes the library.
    ///
    /// # Errors
    ///
    /// There is none for this system, or the file cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        if !is_available() {
            return Err(RunError::NoLibrary.into());
        }
        // A new file in its place: running programs have the former one mapped.
        let folder = self.output.parent().filter(|folder| !folder.as_os_str().is_empty());
        let failed = |error| RunError::Unreadable(self.output.clone(), error);
        let file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(folder.unwrap_or(Path::new(".")));
        let mut file = file.map_err(failed)?;
        file.write_all(LIBRARY).map_err(failed)?;
        file.persist(&self.output).map_err(|error| failed(error.error))?;
        writeln!(context.out, "wrote {}", self.output.display())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The library in a private folder, which is removed with this value.
#[derive(Debug)]
pub struct Preload {
    file: PathBuf,
    _folder: TempDir,
}

impl Preload {
    /// Writes the library to a file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write() -> Result<Self, RunError> {
        let parent = folders().find(|folder| is_usable(folder)).unwrap_or_else(env::temp_dir);
        let failed = |error| RunError::Folder(parent.clone(), error);
        // Nobody else may replace it.
        let folder = tempfile::Builder::new()
            .prefix("about-memory-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(failed)?;
        let file = folder.path().join("libdmd_preload.so");
        let write = || PrivateFile::create(&file)?.keep()?.write_all(LIBRARY);
        write().map_err(failed)?;
        Ok(Preload { file, _folder: folder })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Has the program that the command starts load the library; with `children`, the processes
    /// that it starts too.
    pub(crate) fn apply(&self, command: &mut Command, children: bool) {
        let mut libraries = self.file.clone().into_os_string();
        if let Some(others) = env::var_os(LD_PRELOAD).filter(|others| !others.is_empty()) {
            libraries.push(":");
            libraries.push(others);
        }
        command.env(LD_PRELOAD, libraries);
        if children {
            command.env_remove(dmd::__private::CHILD_OF_VARIABLE);
        } else {
            command.env(dmd::__private::CHILD_OF_VARIABLE, std::process::id().to_string());
        }
    }
}

/// The variable with the libraries that the dynamic linker loads first.
const LD_PRELOAD: &str = "LD_PRELOAD";

/// Returns the folders for the file, the best first.
fn folders() -> impl Iterator<Item = PathBuf> {
    let of = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let runtime = of("XDG_RUNTIME_DIR").map(PathBuf::from);
    let home = of("HOME").map(PathBuf::from);
    [Some(env::temp_dir()), runtime, home].into_iter().flatten()
}

/// Returns whether the dynamic linker can load files of this folder. Blanks and colons separate
/// libraries.
fn is_usable(folder: &Path) -> bool {
    let bytes = folder.as_os_str().as_bytes();
    // Only Linux names the flag; no library is preloaded elsewhere.
    #[cfg(target_os = "linux")]
    let may_execute =
        statvfs(folder).is_ok_and(|mount| !mount.f_flag.contains(StatVfsMountFlags::NOEXEC));
    #[cfg(not(target_os = "linux"))]
    let may_execute = true;
    folder.is_absolute() && may_execute && !bytes.iter().any(|byte| b" :$".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_for_temporary_files_is_the_first() {
        assert_eq!(folders().next(), Some(env::temp_dir()));
    }
}
