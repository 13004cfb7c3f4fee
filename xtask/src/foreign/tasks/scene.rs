//! The place of the tasks: a folder with a small package that is built, and a shell.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;
use crate::scratch::Scratch;

const MANIFEST: &str = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
    [profile.release]\ndebug = true\n\n[workspace]\n";

/// A program that runs during a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// None.
    None,
    /// The shop, which takes orders.
    Shop,
}

/// The folder with the package, which is removed at the end.
pub(super) struct Scene {
    folder: PathBuf,
    /// The folders of programs, ours first.
    path: std::ffi::OsString,
    _scratch: Scratch,
}

/// A running program that ends with its value.
pub(super) struct Running(Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Scene {
    /// Writes the package and builds it. `programs` is the folder of ours.
    pub(super) fn new(programs: &Path) -> Result<Scene, Failure> {
        let scratch = Scratch::new()?;
        let folder = scratch.0.join("shop");
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("Cargo.toml"), MANIFEST)?;
        fs::write(folder.join("src/main.rs"), include_str!("shop/main.rs"))?;
        fs::write(folder.join("shop.py"), include_str!("shop/shop.py"))?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(programs.to_owned());
        let path = std::env::join_paths(own.chain(std::env::split_paths(&path)))?;
        let scene = Scene { folder, path, _scratch: scratch };
        let Typed { printed, .. } =
            scene.type_lines(&["cargo build --release && cargo test --no-run"])?;
        if !scene.folder.join("target/release/shop").is_file() {
            return Err(format!("the shop could not be built:\n{printed}").into());
        }
        Ok(scene)
    }

    /// Removes what another way left, runs the lines that make the given files, and starts the
    /// service.
    pub(super) fn prepare(&self, service: Service, before: &[&str]) -> Result<Running, Failure> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let stays = ["Cargo.toml", "Cargo.lock", "src", "shop.py", "target"];
            if stays.iter().any(|own| name == *own) {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        let mut child = None;
        if service == Service::Shop {
            let mut shop = Command::new(self.folder.join("target/release/shop"));
            shop.arg("300").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            child = Some(shop.spawn()?);
        }
        let mut running = Running(child);
        if let Some(output) = running.0.as_mut().and_then(|child| child.stdout.take()) {
            // It prints a line when it is open.
            BufReader::new(output).read_line(&mut String::new())?;
        }
        self.type_lines(before)?;
        Ok(running)
    }

    /// Runs the lines in a shell, one after another. Returns what they print and the time.
    pub(super) fn type_lines(&self, lines: &[&str]) -> Result<Typed, Failure> {
        let mut typed = Typed::default();
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                // Nobody types the next line sooner. It is not counted.
                std::thread::sleep(Duration::from_secs(1));
            }
            let mut shell = Command::new("bash");
            // The last line is the shell's: seconds, and those of a processor.
            let script = format!("TIMEFORMAT='%R %U %S'; time {{ {line}\n}}");
            shell.args(["-c", &script]).current_dir(&self.folder).env("PATH", &self.path);
            // No window opens, and nothing is set that a new user has not.
            for name in ["DISPLAY", "DMD", "RUSTFLAGS", "CARGO_TARGET_DIR", "RUST_BACKTRACE"] {
                shell.env_remove(name);
            }
            let output = shell.stdin(Stdio::null()).output()?;
            let notes = String::from_utf8_lossy(&output.stderr);
            let (notes, times) =
                notes.trim_end().rsplit_once('\n').unwrap_or(("", notes.trim_end()));
            typed.spent.add(times)?;
            typed.printed.push_str(&String::from_utf8_lossy(&output.stdout));
            typed.printed.push_str(notes);
        }
        Ok(typed)
    }

    /// Returns the content of a file of the folder, or nothing.
    pub(super) fn content(&self, file: &str) -> String {
        let bytes = fs::read(self.folder.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The output of some lines, and their time.
#[derive(Default)]
pub(super) struct Typed {
    pub(super) printed: String,
    pub(super) spent: Spent,
}

/// Time from Enter to the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) wall: Duration,
    /// The time of processors, which other programs on the machine hardly change.
    pub(super) cpu: Duration,
}

impl Spent {
    /// Adds the line that the shell's `time` prints: real, user, system.
    fn add(&mut self, line: &str) -> Result<(), Failure> {
        let seconds = |word: &str| word.parse().ok().map(Duration::from_secs_f64);
        let times: Option<Vec<Duration>> = line.split_whitespace().map(seconds).collect();
        let Some([wall, user, system]) = times.as_deref() else {
            return Err(format!("the shell printed no times but {line:?}").into());
        };
        self.wall += *wall;
        self.cpu += *user + *system;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_lines_are_added() {
        let mut spent = Spent::default();
        spent.add("1.500 0.250 0.250").unwrap();
        spent.add("0.500 0.000 0.125").unwrap();
        let expected = Spent { wall: Duration::from_secs(2), cpu: Duration::from_millis(625) };
        assert_eq!(spent, expected);
        assert!(spent.add("no times").is_err());
    }
}
