//! The file of `--output`: private to its user, and renamed into place when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use memreport::__private::PrivateFile;

/// A buffered file that gets its name when it is complete, or a device such as `/dev/stdout`.
#[derive(Debug)]
pub(crate) struct Output(BufWriter<Target>);

#[derive(Debug)]
enum Target {
    /// A new file under a random name.
    File(PrivateFile),
    /// A device or a pipe, which is written to as it is.
    Device(File),
}

impl Output {
    /// Creates the file, or opens the device.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        // The user names the file, so a link to a device means the device.
        let is_device = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        let target = if is_device {
            Target::Device(fs::OpenOptions::new().write(true).open(path)?)
        } else {
            Target::File(PrivateFile::create(path)?)
        };
        Ok(Output(BufWriter::new(target)))
    }

    /// Writes the rest, and gives the complete file its name.
    pub(crate) fn keep(self) -> io::Result<()> {
        match self.0.into_inner().map_err(io::IntoInnerError::into_error)? {
            Target::File(file) => file.keep().map(drop),
            Target::Device(_) => Ok(()),
        }
    }
}

/// Refuses an output file that is one of the inputs, which it would replace.
///
/// # Errors
/// The output is an input, perhaps under another name.
pub(crate) fn refuse_input<'p>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<(), String> {
    match inputs.into_iter().find(|input| is_same_file(output, input)) {
        Some(input) => Err(format!(
            "{}: the output would replace the input {}; name another output",
            output.display(),
            input.display()
        )),
        None => Ok(()),
    }
}

/// Returns whether two paths are of one regular file.
fn is_same_file(first: &Path, second: &Path) -> bool {
    let (Ok(a), Ok(b)) = (fs::metadata(first), fs::metadata(second)) else { return false };
    if !a.is_file() || !b.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        fs::canonicalize(first)
            .ok()
            .is_some_and(|first| fs::canonicalize(second).ok() == Some(first))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::File(file) => file.write(bytes),
            Target::Device(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::File(file) => file.flush(),
            Target::Device(file) => file.flush(),
        }
    }
}
