//! Reads the mappings of a process.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use std::fs;
use std::ops::Range;
use std::path::Path;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::running::ProcessError;

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    pub(crate) is_writable: bool,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    /// The path of the file, a word in brackets, or nothing.
    pub(crate) path: String,
}

impl Mapping {
    /// Returns the last part of the path.
    pub(crate) fn file_name(&self) -> &str {
        Path::new(&self.path).file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// Returns the mappings of a process, by address.
///
/// # Errors
///
/// The process has ended, or may not be read.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) fn mappings(pid: u32) -> Result<Vec<Mapping>, ProcessError> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps"));
    let text = text.map_err(|error| ProcessError::Unreadable(pid, error))?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Parses a line of `/proc/PID/maps`: proc(5).
#[cfg(any(test, all(target_os = "linux", target_arch = "x86_64")))]
pub(crate) fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let is_writable = words.next()?.starts_with("rw");
    let offset = number(words.next()?)?;
    let _device = words.next()?;
    let inode = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim().to_owned();
    Some(Mapping { range: number(start)?..number(end)?, is_writable, offset, inode, path })
}

/// Returns whether a file of this name is a part of glibc that loads or allocates.
pub(crate) fn is_c_library(name: &str) -> bool {
    ["libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux", "libc-2.", "ld-2.", "libdl-2."]
        .iter()
        .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_or_skipped() {
        let line = "555555554000-555555556000 rw-p 00001000 fe:00 11      /usr/bin/some program";
        let mapping = Mapping {
            range: 0x5555_5555_4000..0x5555_5555_6000,
            is_writable: true,
            offset: 4096,
            inode: 11,
            path: "/usr/bin/some program".to_owned(),
        };
        assert_eq!(parse(line), Some(mapping.clone()));
        assert_eq!(mapping.file_name(), "some program");
        let line = "7ffff7e00000-7ffff7e0d000 r--p 00000000 00:00 0 ";
        assert!(parse(line).is_some_and(|found| found.path.is_empty() && !found.is_writable));
        assert_eq!(parse("no mapping"), None);
    }
}
