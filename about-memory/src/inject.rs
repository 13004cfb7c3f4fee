//! Loads the tracker's library into a running program, and calls it there.
//!
//! One thread of the program is stopped where it holds no lock of the allocator's or the linker's
//! (`safe_point`), and is made to call `dlopen` on a stack of its own (`load`). `program` finds the
//! functions, and refuses programs that cannot be tracked.

mod error;
mod program;
mod safe_point;
mod load;

pub(crate) use error::InjectError;

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use crate::glibc_heap::Sum;

use load::{Load, Loader};
use program::Program;

/// The function of the library.
const ENTRY: &str = "memreport_attach";

/// Loads the library and calls its function with these words of `$DMD`, and with the blocks that
/// the program has. Returns how long a thread was kept from its work.
///
/// # Errors
///
/// The program cannot be traced or tracked, or no thread can be borrowed in time. It goes on as if
/// nothing had happened.
pub(crate) fn inject(
    pid: u32,
    library: &[u8],
    words: &str,
    earlier: Sum,
    timeout: Duration,
) -> Result<Duration, InjectError> {
    let program = Program::of(pid)?;
    let words =
        CString::new(words).map_err(|_| InjectError::Library("a word has a zero".into()))?;
    let file = LibraryFile::write(pid, library)?;
    let thread = safe_point::find(&program, Instant::now() + timeout)?;
    let began = Instant::now();
    let function = CString::new(ENTRY).unwrap_or_default();
    let loader = Loader::begin(&program, thread, began + timeout)?;
    loader.load(&Load { path: &file.inside, function: &function, words: &words, earlier })?;
    Ok(began.elapsed())
}

/// The names of the library's files: between these, the number of the process that writes it.
const PREFIX: &str = "memreport-";
const SUFFIX: &str = ".so";

/// The age of a file that nobody loads any more.
const LEFT: Duration = Duration::from_secs(60);

/// Removes files that killed processes have left in a folder, as far as this user may.
fn remove_left(folder: &Path) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files.filter(|file| is_of_gone_process(&file.file_name().to_string_lossy())) {
        let age = file.metadata().and_then(|found| found.modified()).map(|time| time.elapsed());
        if matches!(age, Ok(Ok(age)) if age > LEFT) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Returns whether a file's name is one of a process that has ended.
fn is_of_gone_process(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let number = number.and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
    number.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists())
}

/// The library in a folder of the program's, until this value is dropped: the program may be in a
/// container.
struct LibraryFile {
    inside: CString,
    _outside: NamedTempFile,
}

impl LibraryFile {
    fn write(pid: u32, library: &[u8]) -> Result<Self, InjectError> {
        let mut failed = None;
        for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
            match Self::write_in(pid, folder, library) {
                Ok(file) => return Ok(file),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let why = failed.map_or_else(String::new, |error| error.to_string());
        Err(InjectError::Library(format!("the program's /tmp takes no file: {why}")))
    }

    fn write_in(pid: u32, folder: &str, library: &[u8]) -> io::Result<Self> {
        let place = format!("/proc/{pid}/root{folder}");
        remove_left(Path::new(&place));
        // The program's user reads it.
        let mut outside = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .suffix(SUFFIX)
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(place)?;
        outside.write_all(library)?;
        let name = outside.path().file_name().unwrap_or_default();
        let inside = CString::new(Path::new(folder).join(name).into_os_string().into_vec())?;
        Ok(LibraryFile { inside, _outside: outside })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn files_of_killed_processes_are_removed_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::process::id();
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let keep = [
            format!("memreport-{own}-a.so"),
            "memreport-4194305-new.so".into(),
            "memreport-x-a.so".into(),
            "memreport-4194305-a.txt".into(),
            "other.so".into(),
        ];
        for name in keep.iter().map(String::as_str).chain(["memreport-4194305-old.so"]) {
            let file = File::create(folder.path().join(name)).expect("a file");
            if !name.contains("new") {
                file.set_modified(hour_ago).expect("its time is set");
            }
        }
        remove_left(folder.path());
        let left = fs::read_dir(folder.path()).expect("a folder").flatten();
        let mut left: Vec<_> =
            left.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
        let mut keep = keep.to_vec();
        left.sort();
        keep.sort();
        assert_eq!(left, keep);
    }
}
