//! Finds a program's file, and checks that it was built with DMD.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::{Object, ObjectSection};

use super::error::RunError;

/// Returns the program's file, by the rules of a shell.
pub(crate) fn find(name: &OsStr) -> Result<PathBuf, RunError> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let named = PathBuf::from(name);
    if named.components().count() > 1 {
        // Return the path as it is: starting the program gives the best error.
        return if named.exists() { Ok(named) } else { Err(RunError::NotFound(name.to_owned())) };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found =
        env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path));
    found.ok_or_else(|| RunError::NotFound(name.to_owned()))
}

/// Checks that the program's file contains DMD.
pub(crate) fn check(program: &Path) -> Result<(), RunError> {
    let unreadable = |error| RunError::Unreadable(program.to_owned(), error);
    let mut file = File::open(program).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
        return Err(RunError::NotABinary(program.to_owned()));
    }
    let cache = ReadCache::new(file);
    let Ok(binary) = object::File::parse(&cache) else {
        return Err(RunError::NotABinary(program.to_owned()));
    };
    let mark = dmd::run::MARKER_SECTION;
    if binary.sections().any(|section| section.name() == Ok(mark)) {
        Ok(())
    } else {
        Err(RunError::NoDmd(program.to_owned()))
    }
}
