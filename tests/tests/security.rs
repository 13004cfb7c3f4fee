//! Tests the boundary between users: set-user-id programs, modes of files, planted links, and
//! exhausted descriptors.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use about_memory::{Cli, Context};
use clap::Parser;

use crate::executable::install;

const MOMENTS: &str = env!("CARGO_BIN_EXE_moments");
const SERVED: &str = env!("CARGO_BIN_EXE_served");
const HELD: &str = env!("CARGO_BIN_EXE_held");

/// The other user of the tests that need two.
const NOBODY: u32 = 65534;

/// A folder that everybody may enter, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("memreport-security-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
        Folder(path)
    }

    /// Creates a folder in it that everybody may write to.
    fn open_to_all(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir(&path).expect("a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("ours");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it exists").permissions().mode() & 0o7777
}

/// Returns the modes of all files below a folder.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for name in names(folder) {
        let path = folder.join(&name);
        if path.is_dir() { found.extend(modes(&path)) } else { found.push((name, mode(&path))) }
    }
    found
}

/// Makes a copy of a program that runs as root for every user. `None` if this user cannot.
#[expect(clippy::print_stdout, reason = "a test that does not run must print why")]
fn set_user_id(program: &str, folder: &Folder) -> Option<PathBuf> {
    if memreport::serve::user() != 0 {
        println!("not run: only root can be two users");
        return None;
    }
    let copy = folder.0.join("program");
    install(program.as_ref(), &copy, 0o4755);
    // A file system may be mounted so that the bit has no effect.
    let mut command = Command::new("sh");
    command.args(["-c", "\"$0\" wait 1 & sleep 0.3; stat -c %u /proc/$!/mem; wait"]).arg(&copy);
    let output = command.uid(NOBODY).gid(NOBODY).current_dir("/").output().expect("it runs");
    if String::from_utf8_lossy(&output.stdout).trim() != "0" {
        println!("not run: set-user-id programs have no effect in {}", folder.0.display());
        return None;
    }
    Some(copy)
}

/// The person who starts a program that runs as another user chooses its environment.
#[test]
fn set_user_id_programs_ignore_the_environment() {
    let folder = Folder::new("setuid");
    let Some(program) = set_user_id(MOMENTS, &folder) else { return };
    let chosen = folder.open_to_all("chosen");
    let listener = UnixListener::bind(chosen.join("socket")).expect("it is bound");
    fs::set_permissions(chosen.join("socket"), fs::Permissions::from_mode(0o777)).expect("ours");
    listener.set_nonblocking(true).expect("a flag");
    let precious = folder.0.join("precious");
    fs::write(&precious, "root's own").expect("written");
    let text = |path: &Path| path.display().to_string();
    for (variable, value) in [
        ("DMD", "--mode=nonsense".to_owned()),
        (dmd::record::VARIABLE, text(&chosen.join("recording"))),
        (dmd::record::VARIABLE, text(&precious)),
        (dmd::saves::VARIABLE, format!("every=10s into={}", chosen.join("saves").display())),
        (dmd::run::VARIABLE, text(&chosen)),
    ] {
        let mut command = Command::new(&program);
        command.args(["wait", "0.2"]).env(variable, &value);
        let output = command.uid(NOBODY).gid(NOBODY).current_dir("/").output().expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), message.as_str()), (Some(0), ""), "{variable}={value}");
        assert_eq!(names(&chosen), ["socket"], "{variable}={value}");
        assert!(listener.accept().is_err(), "{variable}={value}");
        assert_eq!(names(&folder.0), ["chosen", "precious", "program"], "{variable}={value}");
    }
    assert_eq!(fs::read_to_string(precious).expect("still there"), "root's own");
}

#[test]
fn set_user_id_servers_choose_their_own_folder() {
    let folder = Folder::new("setuid-server");
    let Some(program) = set_user_id(MOMENTS, &folder) else { return };
    install(SERVED.as_ref(), &program, 0o4755);
    // A folder that passes the check of the owner, such as one that root left somewhere.
    let private = folder.0.join("private");
    fs::create_dir(&private).expect("a folder");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).expect("ours");
    let mut command = Command::new(&program);
    command.arg("stop").env("XDG_RUNTIME_DIR", &private).stdin(Stdio::null());
    let output = command.uid(NOBODY).gid(NOBODY).current_dir("/").output().expect("it runs");
    let socket = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(socket.starts_with("/tmp/memreport-0/"), "{output:?}");
}

/// Runs a program in a shell with this umask.
fn with_umask(mask: &str, program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask \"$0\"; exec \"$@\"", mask, program]);
    command
}

#[test]
fn files_with_contents_of_the_heap_are_private() {
    let folder = Folder::new("modes");
    for (mask, expected) in [("0", 0o600), ("022", 0o600), ("0277", 0o400)] {
        let saves = folder.0.join(mask);
        let mut command = with_umask(mask, MOMENTS);
        command.args(["wait", "0.5"]).env("DMD", "--mode=live");
        // The folder exists, so that a strict mask leaves it usable.
        fs::create_dir(&saves).expect("a folder");
        command.env(dmd::saves::VARIABLE, format!("every=10s into={}", saves.display()));
        command.env(dmd::record::VARIABLE, saves.join("recording-%p"));
        assert!(command.status().expect("it runs").success());
        let found = modes(&saves);
        assert_eq!(found.len(), 3, "a report, a dump and a recording: {found:?}");
        assert!(found.iter().all(|(_, mode)| *mode == expected), "{mask}: {found:?}");
    }
    // A file that others could read does not stay readable.
    let report = folder.0.join("report.json");
    fs::write(&report, "old").expect("written");
    fs::set_permissions(&report, fs::Permissions::from_mode(0o666)).expect("ours");
    assert!(Command::new(HELD).arg(&report).status().expect("it runs").success());
    assert_eq!(mode(&report), 0o600);
}

#[test]
fn a_snapshot_from_outside_is_private_too() {
    let folder = Folder::new("snapshot");
    let mut served = Command::new(SERVED);
    served.arg(format!("folder={}", folder.0.display())).env("DMD", "--mode=live");
    let mut child = served.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut socket = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut socket).expect("it prints its socket");
    let saved = folder.open_to_all("saved");
    let output = saved.join("heap.json.gz").display().to_string();
    for name in ["heap.json.gz", "heap.dmd.json.gz"] {
        fs::write(saved.join(name), "old").expect("written");
        fs::set_permissions(saved.join(name), fs::Permissions::from_mode(0o644)).expect("ours");
    }
    let cli = ["about-memory", "snapshot", socket.trim(), "--dump", "-o", &output];
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let cli = Cli::try_parse_from(cli).expect("right words");
    cli.run(&mut Context::new(&mut out, &mut notes)).expect("it answers");
    let found = modes(&saved);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|(_, mode)| *mode == 0o600), "{found:?}");
    let symbolicated = saved.join("with-names.json").display().to_string();
    let dump = saved.join("heap.dmd.json.gz").display().to_string();
    let cli = ["about-memory", "symbolicate", &dump, "-o", &symbolicated];
    let cli = Cli::try_parse_from(cli).expect("right words");
    cli.run(&mut Context::new(&mut out, &mut notes)).expect("a dump");
    assert_eq!(mode(Path::new(&symbolicated)), 0o600);
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

/// Another user can guess a process number, and put links where the process will write.
#[test]
fn planted_links_are_not_followed() {
    let folder = Folder::new("links");
    let precious = folder.0.join("precious");
    fs::write(&precious, "not to be overwritten").expect("written");
    let planted = |names: &[&str], command: &str| {
        let open = folder.open_to_all("open");
        let links: String =
            names.iter().map(|name| format!("ln -s \"$0\" \"$1/{name}\"; ")).collect();
        let script = format!("{links}{command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(&precious).arg(&open);
        assert!(shell.status().expect("it runs").success());
        assert_eq!(fs::read_to_string(&precious).expect("there"), "not to be overwritten");
        let left = names_and_links(&open);
        fs::remove_dir_all(open).expect("ours");
        left
    };
    let save = format!("exec {HELD} \"$1/heap.json\"");
    let left = planted(&["incomplete-$$-heap.json", "incomplete-$$-heap.dmd.json"], &save);
    assert_eq!(left.iter().filter(|(_, is_link)| !is_link).count(), 1, "{left:?}");
    // A link under the final name is replaced, and not followed.
    let left = planted(&["heap.json"], &save);
    assert_eq!(left, [("heap.json".to_owned(), false)]);
    let record = format!("export {}=\"$1/r-%p\"; exec {MOMENTS}", dmd::record::VARIABLE);
    let left = planted(&["r-$$"], &record);
    assert!(left.len() == 1 && !left[0].1, "{left:?}");
}

/// Returns the names in a folder, and whether each is a symbolic link.
fn names_and_links(folder: &Path) -> Vec<(String, bool)> {
    let is_link = |name: &str| folder.join(name).is_symlink();
    names(folder).into_iter().map(|name| (name.clone(), is_link(&name))).collect()
}

/// A file name that is a device or a pipe belongs to somebody else.
#[test]
fn what_is_no_regular_file_is_not_replaced() {
    let folder = Folder::new("devices");
    let pipe = folder.0.join("heap.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it runs").success());
    assert!(!Command::new(HELD).arg(&pipe).status().expect("it runs").success());
    assert_eq!(names(&folder.0), ["heap.json"], "nothing is left");
    let socket = folder.0.join("link.json");
    symlink("/dev/null", &socket).expect("a link");
    assert!(Command::new(HELD).arg(&socket).status().expect("it runs").success());
    assert!(!socket.is_symlink(), "the link itself is replaced");
}

/// The variable is inherited: a child must not truncate the recording of its parent.
#[test]
fn every_process_records_into_a_file_of_its_own() {
    let folder = Folder::new("inherited");
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" wait 0.4 & \"$0\" wait 0.2 & wait", MOMENTS]);
    shell.env(dmd::record::VARIABLE, folder.0.join("leak.rec"));
    assert!(shell.status().expect("it runs").success());
    let files = names(&folder.0);
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        assert!(file.starts_with("leak.rec."), "{file}");
        let file = fs::File::open(folder.0.join(file)).expect("there");
        assert!(memreport_analysis::recording::read(file).expect("a recording").is_whole);
    }
}

/// Returns the processor time of a process so far.
fn processor_time(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> =
        text.rsplit_once(") ").expect("a name").1.split_ascii_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<u64>().expect("a number");
    // The kernel counts hundredths of a second on every architecture.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

#[test]
fn a_server_without_descriptors_neither_spins_nor_hangs() {
    let folder = Folder::new("descriptors");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 20; exec \"$0\" \"$@\"", SERVED]);
    command.arg(format!("folder={}", folder.0.display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut socket = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut socket).expect("it prints its socket");
    let connect = || UnixStream::connect(socket.trim()).expect("it listens");
    // These send nothing, and keep their descriptors for some seconds.
    let silent: Vec<UnixStream> = (0..30).map(|_| connect()).collect();
    std::thread::sleep(Duration::from_millis(200));
    let before = processor_time(child.id());
    // Without a descriptor left, the server ends a new connection at once.
    let mut refused = connect();
    refused.set_read_timeout(Some(Duration::from_secs(1))).expect("a limit");
    let answer = refused.read(&mut [0; 1]);
    std::thread::sleep(Duration::from_secs(2));
    let spent = processor_time(child.id()) - before;
    assert!(spent < Duration::from_millis(300), "{spent:?} of processor time in two seconds");
    assert!(matches!(answer, Ok(0)) || answer.as_ref().is_err_and(is_reset), "{answer:?}");
    // It serves again once there are descriptors.
    drop(silent);
    std::thread::sleep(Duration::from_millis(300));
    let mut asking = connect();
    asking.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    std::io::Write::write_all(&mut asking, b"{\"command\":\"ping\"}\n").expect("it reads");
    assert!(asking.read(&mut [0; 1]).is_ok_and(|count| count == 1), "it answers");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

fn is_reset(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::ConnectionReset
}
