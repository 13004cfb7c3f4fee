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

/// Returns the folder for this user's sockets, which exists and is private: `$XDG_RUNTIME_DIR`,
/// passed as `runtime`, or `/tmp/memreport-UID` where that cannot be used. Clients look in both.
///
/// The variable may be inherited from another user (`sudo -E`), or name a folder that a container
/// lacks. Neither is this program's fault, so neither stops it.
pub(super) fn prepared(runtime: Option<OsString>, uid: u32) -> io::Result<PathBuf> {
    first_prepared([folder(runtime, uid), folder(None, uid)], uid)
}

/// Returns the first of two folders that can be used.
fn first_prepared([first, second]: [PathBuf; 2], uid: u32) -> io::Result<PathBuf> {
    let Err(error) = prepare(&first, uid) else { return Ok(first) };
    if first == second {
        return Err(error);
    }
    match prepare(&second, uid) {
        Ok(()) => Ok(second),
        Err(other) => Err(io::Error::new(error.kind(), format!("{error}; {other}"))),
    }
}

/// Creates the folder, or checks that only this user may enter it.
fn prepare(folder: &Path, uid: u32) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other.map_err(named)?,
    }
    // Does not follow links: in /tmp, any user may have created one.
    let found = fs::symlink_metadata(folder).map_err(named)?;
    let fault = match found.mode() & 0o777 {
        _ if !found.is_dir() => "it is no folder".to_owned(),
        _ if found.uid() != uid => format!("it belongs to user {}", found.uid()),
        mode if mode & 0o077 != 0 => format!("others may enter it (mode {mode:04o})"),
        _ => return Ok(()),
    };
    Err(named(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{fault}, so no socket can be made there; set $XDG_RUNTIME_DIR to a folder of user \
             {uid} with mode 0700"
        ),
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
        let refusal = |folder: &Path, uid| prepare(folder, uid).unwrap_err().to_string();
        assert!(refusal(&link, uid).contains("it is no folder"), "{}", refusal(&link, uid));
        let theirs = refusal(&base, uid + 1);
        assert!(theirs.contains(&format!("it belongs to user {uid}, ")), "{theirs}");
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        let open = refusal(&base, uid);
        assert!(open.contains("others may enter it (mode 0755)"), "{open}");
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_runtime_folder_that_cannot_be_used_is_replaced() {
        let base = std::env::temp_dir().join(format!("memreport-runtime-{}", std::process::id()));
        let uid = crate::serve::sys::user();
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        let [missing, fallback] = ["no/such/folder", "fallback"].map(|name| base.join(name));
        let prepared =
            |first: &Path, second: &Path| first_prepared([first, second].map(Path::to_owned), uid);
        assert_eq!(prepared(&missing, &fallback).unwrap(), fallback, "missing");
        assert_eq!(prepared(&base, &fallback).unwrap(), fallback, "others may enter it");
        let usable = base.join("usable");
        assert_eq!(prepared(&usable, &fallback).unwrap(), usable);
        let error = prepared(&missing, &base).unwrap_err().to_string();
        let both = [&missing, &base].map(|folder| format!("{}: ", folder.display()));
        assert!(both.iter().all(|folder| error.contains(folder)), "{error}");
        let error = prepared(&base, &base).unwrap_err().to_string();
        assert_eq!(error.matches("others may enter it").count(), 1, "{error}");
        fs::remove_dir_all(&base).unwrap();
    }
}
