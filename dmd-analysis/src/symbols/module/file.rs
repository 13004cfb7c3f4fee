//! The gate to files that a dump names: only regular files are read, and only up to a limit.
//!
//! A dump from elsewhere may name a pipe, a device or a file of unlimited size. Files are read
//! rather than mapped, because a mapped file that is truncated meanwhile ends the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, Prefix};

/// The largest file that is read: about twice Firefox's largest library with debug information.
pub(crate) const LARGEST: u64 = 4 << 30;

/// Reads a regular file.
///
/// # Errors
///
/// If the file cannot be opened or read, is no regular file, or is larger than [`LARGEST`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, LARGEST)
}

fn read_up_to(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    if is_of_another_machine(path) {
        let message = "it is on another machine: copy it, or give its share a drive letter";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // Opening a device can have effects, so look before.
    check(&fs::metadata(path)?, limit)?;
    // The path may name another file by now: a pipe must not block, and no terminal is adopted.
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.read(true).open(path)?;
    let size = check(&file.metadata()?, limit)?;
    read_now(file, size)
}

/// Returns whether a path of Windows names a share, `\\server\share`, or a device. Opening a share
/// sends the user's name, and a proof of the password, to any server.
fn is_of_another_machine(path: &Path) -> bool {
    let Some(Component::Prefix(prefix)) = path.components().next() else { return false };
    !matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_))
}

/// Returns the size of a regular file.
fn check(found: &fs::Metadata, limit: u64) -> io::Result<u64> {
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let size = found.len();
    if size > limit {
        let message = format!("it is larger than {} MiB", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(size)
}

/// Reads at most `size` bytes, fewer if the file has become shorter.
fn read_now(file: File, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))?;
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(windows)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_devices_are_not_opened() {
        let program = std::env::current_exe().unwrap();
        assert!(!read(&program).unwrap().is_empty());
        // This machine has no such share, but opening it would fail with another message.
        let shares = [r"\\localhost\c$\a.so", "//localhost/c$/a.so", r"\\?\UNC\localhost\c$\a.so"];
        for path in shares.into_iter().chain([r"\\.\NUL", r"\\.\pipe\a"]) {
            let error = read(Path::new(path)).unwrap_err();
            assert!(error.to_string().starts_with("it is on another machine"), "{path}: {error}");
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("module-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a temporary folder");
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = Folder::new("kinds");
        let at = |name: &str| folder.0.join(name);
        fs::write(at("file"), "text").unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        symlink(at("pipe"), at("to-pipe")).unwrap();
        symlink("/dev/zero", at("to-zero")).unwrap();
        symlink(at("file"), at("to-file")).unwrap();
        for name in ["pipe", "to-pipe", "to-zero", ".", "/dev/zero", "/dev/null"] {
            let error = read(&at(name)).unwrap_err();
            assert_eq!(error.to_string(), "it is no regular file", "{name}");
        }
        assert_eq!(read(&at("to-file")).unwrap(), b"text");
    }

    #[test]
    fn a_file_over_the_limit_is_refused_and_a_shorter_one_is_read_to_its_end() {
        let folder = Folder::new("sizes");
        let path = folder.0.join("file");
        fs::write(&path, "text").unwrap();
        assert_eq!(read_up_to(&path, 4).unwrap(), b"text");
        assert_eq!(read_up_to(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // As if the file were truncated after its size was known.
        assert_eq!(read_now(File::open(&path).unwrap(), 9).unwrap(), b"text");
        assert_eq!(read_now(File::open(&path).unwrap(), 2).unwrap(), b"te");
        File::options().write(true).open(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "it is larger than 4096 MiB");
    }
}
