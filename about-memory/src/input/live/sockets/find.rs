//! Finds the sockets of running programs, in this container or another.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use memreport::serve::{place, user};

use super::error::LiveError;
use super::socket::try_connect;

/// A program with a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its pid in this namespace.
    pub pid: u32,
    /// The path of its socket from here.
    pub socket: PathBuf,
}

/// Returns all programs of this user with a socket, ordered by pid. Some may have ended.
#[must_use]
pub fn find() -> Vec<Program> {
    let mut programs: Vec<Program> = folders().iter().flat_map(|folder| find_in(folder)).collect();
    programs.extend(processes().filter(|pid| is_elsewhere(*pid)).filter_map(|pid| {
        let socket = sockets_of(pid).into_iter().find(|socket| is_socket(socket))?;
        Some(Program { pid, socket })
    }));
    programs.sort_by_key(|program| program.pid);
    programs.dedup_by_key(|program| program.pid);
    programs
}

/// Returns the program of this process.
///
/// # Errors
/// The process does not exist, or has no socket.
pub fn program(pid: u32) -> Result<Program, LiveError> {
    let Ok(process) = fs::metadata(format!("/proc/{pid}")) else {
        return Err(LiveError::NoProcess(pid));
    };
    let listed = folders().into_iter().map(|folder| folder.join(place::socket_name(pid)));
    let found = listed
        .chain(sockets_of(pid))
        .find(|socket| is_socket(socket))
        .map(|socket| Program { pid, socket });
    found.ok_or_else(|| without_socket(pid, user(), process.uid()))
}

/// Returns the reason why a process has no socket, by this user's number and that of its user.
fn without_socket(pid: u32, own: u32, theirs: u32) -> LiveError {
    if own != 0 && own != theirs {
        return LiveError::NotAllowed(pid);
    }
    let folder = place::folder(std::env::var_os("XDG_RUNTIME_DIR"), own);
    LiveError::NotServing(pid, folder.join(place::socket_name(pid)))
}

/// Returns the folders of this user's sockets; for root, the folders of all users.
fn folders() -> Vec<PathBuf> {
    let own = user();
    let mut folders = vec![
        place::folder(std::env::var_os("XDG_RUNTIME_DIR"), own),
        place::folder(None, own),
        PathBuf::from(format!("/run/user/{own}")),
    ];
    if own == 0 {
        folders.extend(of_users("/run/user", ""));
        folders.extend(of_users("/tmp", "memreport-"));
    }
    folders.sort();
    folders.dedup();
    folders
}

/// Returns the subfolders whose names are this prefix and a user's number.
fn of_users(folder: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_a_users =
        |name: &str| name.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok());
    let chosen = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_a_users));
    chosen.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Returns the programs whose sockets are in this folder.
#[must_use]
pub fn find_in(folder: &Path) -> Vec<Program> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = place::pid_of(entry.file_name().to_str()?)?;
            Some(Program { pid, socket: entry.path() })
        })
        .filter(|program| is_socket(&program.socket) && is_plausible(program))
        .collect()
}

/// Returns whether the process exists and has the pid in its socket's name.
///
/// A program in a container that shares the folder has another pid here, and is found by its own
/// files.
fn is_plausible(program: &Program) -> bool {
    if !Path::new(&format!("/proc/{}", program.pid)).exists() {
        remove_if_stale(&program.socket);
        return false;
    }
    own_number(program.pid).is_none_or(|number| number == program.pid)
}

/// Removes the socket of a crashed program. No program listens there again: a new one binds another
/// name first.
fn remove_if_stale(socket: &Path) {
    let refused =
        try_connect(socket).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if refused {
        // Another process may have removed it.
        let _ = fs::remove_file(socket);
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the processes whose program's file has this name, apart from this one.
pub(super) fn processes_named(name: &str) -> Vec<u32> {
    let is_it = |pid: &u32| {
        let file = fs::read_link(format!("/proc/{pid}/exe"));
        file.is_ok_and(|file| file.file_name().is_some_and(|file| file == name))
    };
    processes().filter(is_it).filter(|pid| *pid != std::process::id()).collect()
}

/// Returns whether a process is in another mount or pid namespace.
fn is_elsewhere(pid: u32) -> bool {
    let differs = |of: &str| {
        let theirs = fs::read_link(format!("/proc/{pid}/ns/{of}")).ok();
        theirs
            .is_some_and(|theirs| fs::read_link(format!("/proc/self/ns/{of}")).ok() != Some(theirs))
    };
    differs("mnt") || differs("pid")
}

/// Returns the places where a process may have its socket, by its environment, as paths from here.
fn sockets_of(pid: u32) -> Vec<PathBuf> {
    let user = fs::metadata(format!("/proc/{pid}")).map(|process| process.uid());
    let environment = fs::read(format!("/proc/{pid}/environ"));
    let (Ok(uid), Ok(environment), Some(own)) = (user, environment, own_number(pid)) else {
        return Vec::new();
    };
    let runtime = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"XDG_RUNTIME_DIR="))
        .map(|value| OsString::from_vec(value.to_vec()));
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    // A program that cannot use the variable's folder takes the other.
    [place::folder(runtime, uid), place::folder(None, uid)]
        .iter()
        .filter_map(|folder| folder.strip_prefix("/").ok())
        .map(|folder| root.join(folder).join(place::socket_name(own)))
        .collect()
}

/// Returns the pid of a process in its own namespace: the last of its pids.
fn own_number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A pid beyond the highest of the system.
    const NOBODY: u32 = 4_194_305;

    #[test]
    fn a_program_is_found_while_it_lives_and_stale_sockets_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = |pid| folder.path().join(place::socket_name(pid));
        let pid = std::process::id();
        let _own = UnixListener::bind(socket(pid)).expect("a socket");
        let other_namespace = UnixListener::bind(socket(NOBODY)).expect("a socket");
        drop(UnixListener::bind(socket(NOBODY + 1)).expect("a socket"));
        // The first process exists, but this is no socket.
        fs::write(socket(1), "").expect("a file");
        fs::write(folder.path().join("notes"), "").expect("a file");
        assert_eq!(find_in(folder.path()), [Program { pid, socket: socket(pid) }]);
        assert!(!socket(NOBODY + 1).exists());
        // Somebody listens there, so it is not removed.
        assert!(socket(NOBODY).exists());
        drop(other_namespace);
        assert!(matches!(program(NOBODY), Err(LiveError::NoProcess(NOBODY))));
    }

    #[test]
    fn a_process_of_another_user_may_have_a_socket_that_only_root_sees() {
        for (own, theirs, is_allowed) in [
            (0, 0, true),
            (0, 1000, true),
            (1000, 1000, true),
            (1000, 0, false),
            (1000, 1001, false),
        ] {
            let found = match without_socket(7, own, theirs) {
                LiveError::NotServing(7, _) => true,
                LiveError::NotAllowed(7) => false,
                error => panic!("{error}"),
            };
            assert_eq!(found, is_allowed, "{own} {theirs}");
        }
    }

    #[test]
    fn folders_of_users_have_their_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["memreport-1000", "memreport-x", "1000", "other-7"] {
            fs::create_dir(path(name)).expect("a folder");
        }
        fs::write(path("memreport-5"), "").expect("a file");
        let found = |prefix| of_users(&folder.path().to_string_lossy(), prefix);
        assert_eq!(found("memreport-"), [path("memreport-1000")]);
        assert_eq!(found(""), [path("1000")]);
    }

    #[test]
    fn a_socket_may_be_in_either_folder_of_a_process() {
        let mut command = std::process::Command::new("sleep");
        let child = command.arg("60").env("XDG_RUNTIME_DIR", "/run/user/none").spawn();
        let mut child = child.expect("a program of the system");
        let pid = child.id();
        // A program that has only just begun has no environment yet.
        let mut attempts = (0..500).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            sockets_of(pid)
        });
        let found = attempts.find(|found| found.first() != found.last());
        child.kill().expect("it runs");
        child.wait().expect("it runs");
        let folders = ["run/user/none".to_owned(), format!("tmp/memreport-{}", user())];
        let places =
            folders.map(|folder| format!("/proc/{pid}/root/{folder}/memreport-{pid}.sock"));
        assert_eq!(found, Some(places.map(PathBuf::from).to_vec()));
        assert_eq!(sockets_of(NOBODY), Vec::<PathBuf>::new());
    }

    #[test]
    fn this_process_is_in_its_own_namespaces() {
        let pid = std::process::id();
        assert_eq!(own_number(pid), Some(pid));
        assert!(!is_elsewhere(pid));
        assert!(processes().any(|process| process == pid));
        assert_eq!(own_number(NOBODY), None);
    }
}
