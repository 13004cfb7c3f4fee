//! Locates a program's socket, in a folder that only its user may enter.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Returns the folder for a user's sockets: `$XDG_RUNTIME_DIR`, passed as `runtime`, or
/// `/tmp/memreport-UID` if that is not an absolute path.
#[must_use]
pub fn folder(runtime: Option<OsString>, uid: u32) -> PathBuf {
    match runtime.filter(|folder| Path::new(folder).is_absolute()) {
        Some(folder) => folder.into(),
        None => format!("/tmp/memreport-{uid}").into(),
    }
}

/// Returns the name of a process's socket in the folder.
#[must_use]
pub fn socket_name(pid: u32) -> String {
    format!("memreport-{pid}.sock")
}

/// Returns the process number in the name of a socket.
#[must_use]
pub fn pid_of(socket_name: &str) -> Option<u32> {
    socket_name.strip_prefix("memreport-")?.strip_suffix(".sock")?.parse().ok()
}

/// Creates the folder, or checks that only this user may enter it.
pub(super) fn prepare(folder: &Path, uid: u32) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other.map_err(named)?,
    }
    // Does not follow links: in /tmp, any user may have created one.
    let found = fs::symlink_metadata(folder).map_err(named)?;
    let is_private = found.is_dir() && found.uid() == uid && found.mode() & 0o077 == 0;
    if is_private {
        return Ok(());
    }
    Err(named(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "others may enter it, so no socket can be made there; remove it, or set $XDG_RUNTIME_DIR to a folder of mode 0700",
    )))
}

/// Removes the socket of an earlier process with the same number.
pub(super) fn clear(socket: &Path) -> io::Result<()> {
    match fs::symlink_metadata(socket) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(socket),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn names_and_numbers_belong_together() {
        assert_eq!(pid_of(&socket_name(4711)), Some(4711));
        for other in ["memreport-.sock", "memreport-12", "x-12.sock", "memreport-a.sock"] {
            assert_eq!(pid_of(other), None, "{other}");
        }
        assert_eq!(folder(None, 7), Path::new("/tmp/memreport-7"));
        assert_eq!(folder(Some("".into()), 7), Path::new("/tmp/memreport-7"));
        assert_eq!(folder(Some("/run/user/7".into()), 7), Path::new("/run/user/7"));
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let base = std::env::temp_dir().join(format!("memreport-place-{}", std::process::id()));
        let uid = crate::serve::sys::user();
        prepare(&base, uid).unwrap();
        prepare(&base, uid).unwrap();
        let link = base.join("link");
        symlink(&base, &link).unwrap();
        assert!(prepare(&link, uid).is_err(), "a link may lead anywhere");
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        let refusal = prepare(&base, uid).unwrap_err().to_string();
        assert!(refusal.contains("others may enter it"), "{refusal}");
        assert!(prepare(&base, uid + 1).is_err(), "somebody else's");
        fs::remove_dir_all(&base).unwrap();
    }
}
