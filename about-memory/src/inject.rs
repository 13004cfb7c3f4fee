//! Loads the tracker's library into a running program, and calls it there.
//!
//! One thread of the program is stopped where it holds no lock of the allocator's or the linker's
//! (`safe_point`), and is made to call `dlopen` on a stack of its own (`call`). `program` finds the
//! functions, and refuses programs that cannot be tracked. `trace` has the system calls.

mod error;
mod trace;
mod program;
mod safe_point;
mod call;

pub(crate) use error::InjectError;

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use call::Caller;
use program::Program;

/// The function of the library.
const ENTRY: &str = "memreport_attach";

/// Loads the library and calls its function with these words of `$DMD`. Returns how long a thread
/// was kept from its work.
///
/// # Errors
///
/// The program cannot be traced or tracked, or no thread can be borrowed in time. It goes on as if
/// nothing had happened.
pub(crate) fn inject(
    pid: u32,
    library: &[u8],
    words: &str,
    timeout: Duration,
) -> Result<Duration, InjectError> {
    let program = Program::of(pid)?;
    let words =
        CString::new(words).map_err(|_| InjectError::Library("a word has a zero".into()))?;
    let file = LibraryFile::write(pid, library)?;
    let thread = safe_point::find(&program, Instant::now() + timeout)?;
    let began = Instant::now();
    let mut caller = Caller::begin(&program, thread, began + timeout)?;
    let path = caller.text(&file.inside)?;
    // RTLD_NOW: an incomplete library fails here.
    let handle = caller.call(program.dlopen, &[path, 2])?;
    if handle == 0 {
        return Err(InjectError::Library(caller.message(program.dlerror)?));
    }
    let name = caller.text(&CString::new(ENTRY).unwrap_or_default())?;
    let entry = caller.call(program.dlsym, &[handle, name])?;
    if entry == 0 {
        return Err(InjectError::Library(caller.message(program.dlerror)?));
    }
    let words = caller.text(&words)?;
    let refusal = caller.call(entry, &[words])?;
    if refusal != 0 {
        return Err(InjectError::Refused(pid, caller.read_text(refusal)?));
    }
    caller.end()?;
    Ok(began.elapsed())
}

/// The library in a folder of the program's, until this value is dropped: the program may be in a
/// container.
struct LibraryFile {
    outside: PathBuf,
    inside: CString,
}

impl LibraryFile {
    fn write(pid: u32, library: &[u8]) -> Result<Self, InjectError> {
        let mut failed = None;
        for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
            let random = tempfile::Builder::new().prefix("").rand_bytes(12).tempdir();
            let name = random.ok().and_then(|folder| Some(folder.path().file_name()?.to_owned()));
            let name = format!("memreport-{}.so", name.unwrap_or_default().to_string_lossy());
            let inside = Path::new(folder).join(name);
            let outside = Path::new(&format!("/proc/{pid}/root"))
                .join(inside.strip_prefix("/").unwrap_or(&inside));
            let mut options = OpenOptions::new();
            // Readable for the program's user; new, so that nobody has put it there.
            let file = options.write(true).create_new(true).mode(0o644).open(&outside);
            match file.and_then(|mut file| file.write_all(library)) {
                Ok(()) => {
                    let inside = CString::new(inside.into_os_string().into_vec());
                    return Ok(LibraryFile { outside, inside: inside.unwrap_or_default() });
                }
                Err(error) => failed = Some(error),
            }
        }
        let failed = failed.map_or_else(String::new, |error| error.to_string());
        Err(InjectError::Library(format!("no file for it in the program's /tmp: {failed}")))
    }
}

impl Drop for LibraryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.outside);
    }
}
