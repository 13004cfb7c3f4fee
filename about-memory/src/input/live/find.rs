//! Which programs can be asked: those whose sockets are there, in this container or another.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use memreport::serve::{place, user};

use super::error::LiveError;

/// A program that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its process, by the number that it has here.
    pub pid: u32,
    /// Its socket, as it is reached from here.
    pub socket: PathBuf,
}

/// All programs of this user that left a socket, in the order of their numbers. Some may be gone.
#[must_use]
pub fn find() -> Vec<Program> {
    let mut programs: Vec<Program> = folders().iter().flat_map(|folder| find_in(folder)).collect();
    programs.extend(processes().filter(|pid| is_elsewhere(*pid)).filter_map(|pid| {
        let socket = socket_of(pid)?;
        is_socket(&socket).then_some(Program { pid, socket })
    }));
    programs.sort_by_key(|program| program.pid);
    programs.dedup_by_key(|program| program.pid);
    programs
}

/// The program of this process.
///
/// # Errors
/// When there is no such process, or it left no socket.
pub fn program(pid: u32) -> Result<Program, LiveError> {
    let Ok(process) = fs::metadata(format!("/proc/{pid}")) else {
        return Err(LiveError::NoProcess(pid));
    };
    let listed = folders().into_iter().map(|folder| folder.join(place::socket_name(pid)));
    let found = listed
        .chain(socket_of(pid))
        .find(|socket| is_socket(socket))
        .map(|socket| Program { pid, socket });
    found.ok_or_else(|| match (user(), process.uid()) {
        (own, theirs) if own != 0 && own != theirs => LiveError::NotAllowed(pid),
        _ => LiveError::NotServing(
            pid,
            place::folder(std::env::var_os("XDG_RUNTIME_DIR"), user())
                .join(place::socket_name(pid)),
        ),
    })
}

/// The folders of this user's sockets. Root looks into everybody's.
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

/// The folders in a folder that are called so and by the number of a user.
fn of_users(folder: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_a_users =
        |name: &str| name.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok());
    let chosen = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_a_users));
    chosen.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// The programs whose sockets are in this folder.
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

/// Whether the process is there and knows itself by the number in its socket's name: one in a container that shares the
/// folder has another number here, and is found through its own files.
fn is_plausible(program: &Program) -> bool {
    if !Path::new(&format!("/proc/{}", program.pid)).exists() {
        remove_if_stale(&program.socket);
        return false;
    }
    own_number(program.pid).is_none_or(|number| number == program.pid)
}

/// A crashed program leaves its socket. Nobody will ever listen there again: a new one is made under another name first.
fn remove_if_stale(socket: &Path) {
    let refused = std::os::unix::net::UnixStream::connect(socket)
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if refused {
        // Somebody else may have been quicker.
        let _ = fs::remove_file(socket);
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process has other files or other numbers than this one.
fn is_elsewhere(pid: u32) -> bool {
    let differs = |of: &str| {
        let theirs = fs::read_link(format!("/proc/{pid}/ns/{of}")).ok();
        theirs
            .is_some_and(|theirs| fs::read_link(format!("/proc/self/ns/{of}")).ok() != Some(theirs))
    };
    differs("mnt") || differs("pid")
}

/// Where a process has its socket by its own environment, as it is reached from here.
fn socket_of(pid: u32) -> Option<PathBuf> {
    let uid = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let runtime = environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"XDG_RUNTIME_DIR="))
        .map(|value| OsString::from_vec(value.to_vec()));
    let own = own_number(pid)?;
    let folder = place::folder(runtime, uid);
    let inside = folder.strip_prefix("/").ok()?.join(place::socket_name(own));
    Some(Path::new(&format!("/proc/{pid}/root")).join(inside))
}

/// The number by which a process knows itself: the last of those that it has in nested containers.
fn own_number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}
