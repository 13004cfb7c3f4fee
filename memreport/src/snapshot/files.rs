//! Creates files with contents of the heap: private, under random names, renamed when complete.
//!
//! Programs that run as root write reports, dumps and recordings into folders of other users. Every
//! such file is made here, so that three properties hold in one place:
//! * Its mode is 0600 less the umask, also if it replaces a file that others could read.
//! * Nobody can guess its first name, and a file or link with that name is never opened.
//! * The final name is only renamed to: a link there is replaced, not followed.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use super::descriptor::out_of_the_way;

/// The start of the name of an incomplete file.
const INCOMPLETE: &str = "incomplete-";

/// The number of digits of the random number in the name of an incomplete file.
const DIGITS: usize = 16;

/// The number of random names to try. A second one is only needed by chance.
const ATTEMPTS: usize = 4;

/// A new file that only its user may read.
///
/// It has a random name in the folder of its final name. It is removed if it is dropped before
/// [`keep`](Self::keep).
#[derive(Debug)]
pub struct PrivateFile {
    file: File,
    unfinished: Unfinished,
    path: PathBuf,
}

/// The random name of a file, which is removed with this value.
#[derive(Debug)]
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // An error means that it was removed already.
            let _ = fs::remove_file(path);
        }
    }
}

impl PrivateFile {
    /// Creates the file beside its final path.
    ///
    /// # Errors
    ///
    /// Returns errors of creating it, and refuses to replace devices, pipes and sockets.
    pub fn create(path: &Path) -> io::Result<Self> {
        let is_replaceable = |found: fs::Metadata| {
            found.is_file() || found.is_dir() || found.file_type().is_symlink()
        };
        if fs::symlink_metadata(path).is_ok_and(|found| !is_replaceable(found)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let (file, unfinished) = create_new((0..ATTEMPTS).map(|_| unfinished_name(path)))?;
        Ok(PrivateFile { file, unfinished, path: path.to_owned() })
    }

    /// Renames the file to its final path, where it replaces an older one.
    ///
    /// # Errors
    ///
    /// Returns the error of renaming. The file is then removed.
    pub fn keep(mut self) -> io::Result<File> {
        if let Some(unfinished) = &self.unfinished.0 {
            fs::rename(unfinished, &self.path)?;
        }
        self.unfinished.0 = None;
        Ok(self.file)
    }

    /// Removes the name, so that the file exists as long as it is open.
    #[must_use]
    pub fn without_name(self) -> File {
        self.file
    }
}

impl Write for PrivateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Copies a file with contents of the heap to a private one.
///
/// # Errors
///
/// Returns errors of both files.
pub fn copy_private(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = PrivateFile::create(to)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    copy.keep().map(drop)
}

/// Creates a file by the first of these names that does not exist yet.
fn create_new(names: impl Iterator<Item = PathBuf>) -> io::Result<(File, Unfinished)> {
    let mut result = Err(io::ErrorKind::AlreadyExists.into());
    for name in names {
        result = options().open(&name).map(|file| (file, Unfinished(Some(name))));
        match &result {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            _ => break,
        }
    }
    result
}

/// Creates a file that nobody else can open, and that is gone when it is closed. Where the system
/// or the file system needs one, it has a name for a moment, of which `name` is a part.
///
/// # Errors
///
/// Returns the errors of [`PrivateFile::create`].
#[cfg(unix)]
pub fn unnamed_file(folder: &Path, name: &str) -> io::Result<File> {
    open_unnamed(folder, name).map(|file| out_of_the_way(file.into()).into())
}

#[cfg(unix)]
fn open_unnamed(folder: &Path, name: &str) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
        if let Ok(file) = options.open(folder) {
            return Ok(file);
        }
    }
    Ok(PrivateFile::create(&folder.join(name))?.without_name())
}

/// Returns the options of a file that must be new.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    }
    options
}

/// Returns a random name beside a path, with the number of this process.
fn unfinished_name(path: &Path) -> PathBuf {
    // The keys of the hash are random, and their state is private to this process.
    let random = RandomState::new().build_hasher().finish();
    let mut name =
        OsString::from(format!("{INCOMPLETE}{}-{random:0DIGITS$x}-", std::process::id()));
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// An incomplete file, by its name.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incomplete<'name> {
    /// The process that writes it.
    pub(crate) pid: u32,
    /// The final name of the file.
    pub(crate) name: &'name str,
}

/// Parses the name of an incomplete file.
#[cfg(unix)]
pub(crate) fn incomplete(name: &str) -> Option<Incomplete<'_>> {
    let (pid, rest) = name.strip_prefix(INCOMPLETE)?.split_once('-')?;
    let (random, name) = rest.split_once('-')?;
    let is_random = random.len() == DIGITS && random.bytes().all(|digit| digit.is_ascii_hexdigit());
    Some(Incomplete { pid: pid.parse().ok().filter(|_| is_random)?, name })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn names_are_random_and_are_parsed() {
        let path = Path::new("folder/heap.json");
        let [one, other] = [unfinished_name(path), unfinished_name(path)];
        assert_ne!(one, other);
        let name = one.file_name().unwrap().to_str().unwrap();
        let expected = Incomplete { pid: std::process::id(), name: "heap.json" };
        assert_eq!(incomplete(name), Some(expected));
        for name in ["heap.json", "incomplete-1-heap.json", "incomplete-x-0123456789abcdef-heap"] {
            assert_eq!(incomplete(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_that_exists_is_replaced_by_the_next() {
        let folder = std::env::temp_dir().join(format!("memreport-names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let created = |names: &[&str]| {
            let found = create_new(names.iter().map(|name| folder.join(name)));
            found.map(|(_, name)| name.0.as_ref().unwrap().file_name().unwrap().to_owned())
        };
        fs::write(folder.join("a"), "").unwrap();
        symlink(folder.join("nowhere"), folder.join("b")).unwrap();
        assert_eq!(created(&["c", "d"]).unwrap(), "c");
        assert_eq!(created(&["a", "b", "c"]).unwrap(), "c");
        assert_eq!(created(&["a", "b"]).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        // Another error is no reason to try the next one.
        assert_eq!(created(&["no/a", "c"]).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_device_is_not_replaced() {
        let error = PrivateFile::create(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_file_is_private_and_appears_when_it_is_kept() {
        let folder = std::env::temp_dir().join(format!("memreport-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [path, precious] = ["heap.json", "precious"].map(|name| folder.join(name));
        fs::write(&precious, "old").unwrap();
        symlink(&precious, &path).unwrap();
        drop(PrivateFile::create(&path).unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "dropped, it leaves nothing");
        let mut file = PrivateFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old", "not there before it is kept");
        file.keep().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read(&precious).unwrap(), b"old");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).unwrap();
    }
}
