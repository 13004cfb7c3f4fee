//! Finds a program's file, and how it can be tracked.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use object::elf::FileHeader64;
use object::read::ReadCache;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSection};

use super::error::RunError;
use super::preload;
use crate::other_process::is_of_go;

/// The part of a program that tracks its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracker {
    /// The program's own DMD.
    Own,
    /// The library that is preloaded.
    Preloaded,
}

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

/// Returns how the program can be tracked, by its file or, of a script, its interpreter's.
pub(crate) fn tracker(program: &Path) -> Result<Tracker, RunError> {
    let mut path = program.to_owned();
    // The kernel follows as many scripts.
    for _ in 0..5 {
        match open(&path)? {
            Content::Elf(file) => return tracker_of_elf(&path, file),
            Content::Script(interpreter) => path = interpreter,
            Content::Other => break,
        }
    }
    Err(RunError::NotABinary(program.to_owned()))
}

/// The content of a program's file.
enum Content {
    Elf(File),
    /// A script with the path of its interpreter.
    Script(PathBuf),
    Other,
}

fn open(program: &Path) -> Result<Content, RunError> {
    let unreadable = |error| RunError::Unreadable(program.to_owned(), error);
    let mut file = File::open(program).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    let mut start = Vec::new();
    // The kernel reads as much of a script's first line.
    file.by_ref().take(256).read_to_end(&mut start).map_err(unreadable)?;
    if start.starts_with(b"\x7fELF") {
        return Ok(Content::Elf(file));
    }
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(Content::Other) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(interpreter) = words.next() else { return Ok(Content::Other) };
    let interpreter = PathBuf::from(OsString::from_vec(interpreter.to_vec()));
    // `env` becomes the program that it finds.
    let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    if interpreter.file_name() == Some(OsStr::new("env"))
        && let Some(name) = named
    {
        return find(&OsString::from_vec(name.to_vec())).map(Content::Script);
    }
    Ok(Content::Script(interpreter))
}

fn tracker_of_elf(program: &Path, file: File) -> Result<Tracker, RunError> {
    let path = || program.to_owned();
    let status = file.metadata().map_err(|error| RunError::Unreadable(path(), error))?;
    let cache = ReadCache::new(file);
    let Ok(binary) = object::File::parse(&cache) else { return Err(RunError::NotABinary(path())) };
    let mark = dmd::run::MARKER_SECTION;
    if binary.sections().any(|section| section.name() == Ok(mark)) {
        return Ok(Tracker::Own);
    }
    if !preload::is_available() {
        return Err(RunError::NoDmd(path()));
    }
    check_preload_into(program, &status, &cache)?;
    Ok(Tracker::Preloaded)
}

/// Checks that the library can be preloaded into a program, whether it has DMD or not.
pub(crate) fn check_preload(program: &Path) -> Result<(), RunError> {
    if !preload::is_available() {
        return Err(RunError::NoLibrary);
    }
    let unreadable = |error| RunError::Unreadable(program.to_owned(), error);
    let file = File::open(program).map_err(unreadable)?;
    let status = file.metadata().map_err(unreadable)?;
    check_preload_into(program, &status, &ReadCache::new(file))
}

fn check_preload_into(
    program: &Path,
    status: &std::fs::Metadata,
    cache: &ReadCache<File>,
) -> Result<(), RunError> {
    let path = || program.to_owned();
    let Ok(binary) = object::File::parse(cache) else { return Err(RunError::NotABinary(path())) };
    let own = if cfg!(target_arch = "aarch64") {
        object::Architecture::Aarch64
    } else {
        object::Architecture::X86_64
    };
    if !matches!(FileKind::parse(cache), Ok(FileKind::Elf64)) || binary.architecture() != own {
        return Err(RunError::OtherArchitecture(path()));
    }
    match linker(cache) {
        None if File::open(program).is_ok_and(is_of_go) => return Err(RunError::Go(path())),
        None => return Err(RunError::Static(path())),
        Some(linker) if linker.windows(7).any(|part| part == b"ld-musl") => {
            return Err(RunError::Musl(path()));
        }
        Some(_) => {}
    }
    if is_privileged(program, status) {
        return Err(RunError::Privileged(path()));
    }
    Ok(())
}

/// Returns the path of the program's dynamic linker, or `None` if the program is static.
fn linker(cache: &ReadCache<File>) -> Option<Vec<u8>> {
    let binary = ElfFile64::<Endianness, _>::parse(cache).ok()?;
    let _: &FileHeader64<Endianness> = binary.elf_header();
    let endian = binary.endian();
    let headers = binary.elf_program_headers().iter();
    let mut found = headers.filter_map(|header| header.interpreter(endian, cache).ok()?);
    found.next().map(<[u8]>::to_vec)
}

/// Returns whether the program gets privileges that its starter lacks. The dynamic linker then
/// loads no libraries for its starter.
fn is_privileged(program: &Path, status: &std::fs::Metadata) -> bool {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let is_set_user = status.mode() & 0o4000 != 0 && status.uid() != user.as_raw();
    let is_set_group = status.mode() & 0o2010 == 0o2010 && status.gid() != group.as_raw();
    let capabilities = rustix::fs::getxattr(program, "security.capability", &mut [0_u8; 64][..]);
    is_set_user || is_set_group || (capabilities.is_ok() && !user.is_root())
}
