//! `cargo xtask release [FOLDER] [--twice]`: an archive with all that an installation needs. The
//! same commit makes the same bytes.

mod licences;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::build;
use crate::failure::Failure;
use crate::scratch::Scratch;

/// The most bytes of the program.
const MOST: u64 = 15 << 20;

/// The newest version of glibc whose functions the program and the library may need.
const GLIBC: (u32, u32) = (2, 34);

/// The shells with scripts of completion, and where these go in an installation's `share`.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/about-memory"),
    ("zsh", "zsh/site-functions/_about-memory"),
    ("fish", "fish/vendor_completions.d/about-memory.fish"),
];

/// The files of the repository that are added.
const FILES: [&str; 5] =
    ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Makes the archive; with `--twice` another in a clone of the last commit, which must be equal.
/// Returns `false` if they differ, or the program is too big.
pub(crate) fn run(args: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    let (is_twice, folders): (Vec<&str>, Vec<&str>) =
        args.iter().partition(|word| **word == "--twice");
    let into = build::root().join(folders.first().unwrap_or(&"target/dist"));
    fs::create_dir_all(&into)?;
    let scratch = Scratch::new()?;
    let first = archive(&scratch.0, out)?;
    let mut holds = first.program_bytes <= MOST;
    if !holds {
        writeln!(out, "FAILED: the program has {} bytes; at most {MOST}", first.program_bytes)?;
    }
    let (major, minor) = first.glibc;
    writeln!(out, "needs glibc {major}.{minor}")?;
    if first.glibc > GLIBC {
        writeln!(out, "FAILED: it may need {}.{} at most", GLIBC.0, GLIBC.1)?;
        holds = false;
    }
    if !is_twice.is_empty() {
        let second = in_a_clone(&scratch.0, &first.file)?;
        let is_same = fs::read(&first.file)? == fs::read(&second)?;
        let verdict = if is_same { "equal, byte for byte" } else { "FAILED: they differ" };
        writeln!(out, "the same commit in a clone elsewhere: {verdict}")?;
        holds &= is_same;
    }
    let kept = into.join(first.file.file_name().unwrap_or_default());
    fs::copy(&first.file, &kept)?;
    let sum = Command::new("sha256sum").arg(&kept).stderr(Stdio::inherit()).output()?.stdout;
    write!(out, "{}", String::from_utf8_lossy(&sum))?;
    Ok(holds)
}

/// Makes the archive in a clone, and returns its file.
fn in_a_clone(scratch: &Path, first: &Path) -> Result<PathBuf, Failure> {
    let (clone, into) = (scratch.join("clone"), scratch.join("second"));
    let git =
        Command::new("git").arg("clone").arg("--quiet").args([build::root(), &clone]).status()?;
    let mut cargo = build::cargo();
    cargo.current_dir(&clone).env_remove("CARGO_TARGET_DIR");
    cargo.args(["run", "--quiet", "--package", "xtask", "--no-default-features", "--", "release"]);
    if !git.success() || !cargo.arg(&into).status()?.success() {
        return Err("the clone makes no archive".into());
    }
    Ok(into.join(first.file_name().unwrap_or_default()))
}

/// An archive, and the size of its program.
struct Archive {
    file: PathBuf,
    program_bytes: u64,
    /// The newest version of glibc that a function in it needs.
    glibc: (u32, u32),
}

/// Builds the program, and makes an archive in a folder.
fn archive(folder: &Path, out: &mut dyn Write) -> Result<Archive, Failure> {
    let program = program()?;
    let triple = host()?;
    let name = format!("about-memory-{}-{triple}", env!("CARGO_PKG_VERSION"));
    let root = folder.join(&name);
    let share = root.join("share");
    for folder in [root.join("bin"), root.join("lib"), share.join("man/man1")] {
        fs::create_dir_all(folder)?;
    }
    let installed = root.join("bin/about-memory");
    fs::copy(&program, &installed)?;
    // The same program under the name by which cargo finds it.
    fs::hard_link(&installed, root.join("bin/cargo-memreport"))?;
    print(&program, &["man", "--output", text(&share.join("man/man1"))?])?;
    print(&program, &["preload", "-o", text(&root.join("lib/libdmd_preload.so"))?])?;
    for (shell, place) in SHELLS {
        let file = share.join(place);
        fs::create_dir_all(file.parent().unwrap_or(&share))?;
        fs::write(file, print(&program, &["completions", shell])?)?;
    }
    for file in FILES {
        fs::copy(build::root().join(file), root.join(file))?;
    }
    let (licences, packages) = licences::of("about-memory", &triple)?;
    fs::write(root.join("LICENCES-OF-DEPENDENCIES"), licences)?;
    let library = fs::read(root.join("lib/libdmd_preload.so"))?;
    let glibc = newest_glibc(&fs::read(&program)?).max(newest_glibc(&library));
    let file = folder.join(format!("{name}.tar.gz"));
    pack(folder, &name, &file)?;
    let program_bytes = fs::metadata(&program)?.len();
    writeln!(
        out,
        "{name}: program {program_bytes} bytes, archive {} bytes, licences of {packages} packages",
        fs::metadata(&file)?.len()
    )?;
    Ok(Archive { file, program_bytes, glibc })
}

/// Returns the newest version among the names of glibc's versions in a file: `GLIBC_2.34`.
fn newest_glibc(file: &[u8]) -> (u32, u32) {
    const NAME: &[u8] = b"GLIBC_";
    let version = |at: usize| {
        let rest = file.get(at..at + 16)?.strip_prefix(NAME)?;
        let text = str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()?;
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let places = (0..file.len()).filter(|at| file[*at..].starts_with(NAME));
    places.filter_map(version).max().unwrap_or_default()
}

/// Builds the program for release, without the names of folders of this machine.
fn program() -> Result<PathBuf, Failure> {
    let home = build::cargo_home()?;
    let flags = [
        // As .cargo/config.toml has it, which this replaces.
        "-Cforce-frame-pointers=yes".to_owned(),
        "--cfg=memreport_release".to_owned(),
        format!("--remap-path-prefix={}=memreport", text(build::root())?),
        format!("--remap-path-prefix={}=cargo", text(&home)?),
    ];
    let mut cargo = build::cargo();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env_remove("RUSTFLAGS");
    cargo.env("CARGO_INCREMENTAL", "0");
    cargo.args(["build", "--locked", "--profile", "dist", "--package", "about-memory"]);
    build::executable(&mut cargo, "about-memory")
}

/// Returns what the program prints.
fn print(program: &Path, args: &[&str]) -> Result<Vec<u8>, Failure> {
    let output = Command::new(program).args(args).stderr(Stdio::inherit()).output()?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("about-memory {} failed", args.join(" ")).into())
    }
}

/// Packs a folder: files sorted, with the time of the last commit, and without an owner.
fn pack(from: &Path, name: &str, file: &Path) -> Result<(), Failure> {
    let output = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(build::root())
        .stderr(Stdio::inherit())
        .output()?;
    let time = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let time = if time.is_empty() { "0".to_owned() } else { time };
    let status = Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w"])
        // The header of gzip has a time of its own.
        .args([&format!("--mtime=@{time}"), "--use-compress-program=gzip -9 -n", "-C"])
        .arg(from)
        .arg("-cf")
        .args([file, Path::new(name)])
        .status()?;
    if status.success() { Ok(()) } else { Err("tar failed".into()) }
}

/// Returns the target for which the compiler builds by default.
fn host() -> Result<String, Failure> {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .arg("-vV")
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.ok_or("rustc does not name its host")?.to_owned())
}

fn text(path: &Path) -> Result<&str, Failure> {
    Ok(path.to_str().ok_or("a path that is no text")?)
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn the_newest_version_is_found_anywhere_in_a_file() {
        let file = b"\0GLIBC_2.2.5\0GLIBC_2.34\0x GLIBC_2.9\0GLIBC_PRIVATE\0GLIBC_";
        assert_eq!(newest_glibc(file), (2, 34));
        assert_eq!(newest_glibc(b""), (0, 0));
    }
}
