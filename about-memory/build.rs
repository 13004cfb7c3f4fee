//! Builds the library that `about-memory run` preloads into programs without DMD, which the binary
//! contains.
//!
//! It is another build of the tracker, so cargo is run once more, with a folder of its own. Where
//! that cannot work, or without the feature `preload`, the library is empty, and `about-memory run`
//! needs programs with DMD.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    let library = out.join("libdmd_preload.so");
    let package = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../dmd-preload");
    println!("cargo::rerun-if-changed=build.rs");
    reserve_stack();
    // A package from a registry comes without the other's sources.
    let manifest = package.join("Cargo.toml");
    let is_wanted = env::var_os("CARGO_FEATURE_PRELOAD").is_some();
    if !is_wanted || !is_supported() || !manifest.exists() || env::var_os("DOCS_RS").is_some() {
        return write(&library, &[]);
    }
    for source in [
        "dmd-preload",
        "dmd/Cargo.toml",
        "dmd/src",
        "memreport/Cargo.toml",
        "memreport/src",
        "Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed=../{source}");
    }
    let target = variable("TARGET");
    let built = build_folder(&out).join("preload");
    build(&package, &target, &built);
    let file = built.join(&target).join("release/libdmd_preload.so");
    let bytes = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    write(&library, &bytes);
}

/// Gives the main thread the 8 MiB of stack that it has on Linux, on Windows, where the linker
/// reserves one or two.
fn reserve_stack() {
    if variable("CARGO_CFG_TARGET_OS") == "windows" {
        let is_msvc = variable("CARGO_CFG_TARGET_ENV") == "msvc";
        let words = if is_msvc { "/STACK:8388608" } else { "-Wl,--stack,8388608" };
        println!("cargo::rustc-link-arg-bins={words}");
    }
}

/// Returns the folder of this profile's builds, so that all features of this package share one
/// library; this build's own folder if cargo lays them out in another way.
fn build_folder(out: &Path) -> &Path {
    let build = out.ancestors().find(|folder| folder.ends_with("build"));
    build.and_then(Path::parent).unwrap_or(out)
}

/// Returns whether the library exists for the target: Linux with glibc.
fn is_supported() -> bool {
    let is = |name: &str, values: &[&str]| values.contains(&variable(name).as_str());
    is("CARGO_CFG_TARGET_OS", &["linux"])
        && is("CARGO_CFG_TARGET_ENV", &["gnu"])
        && is("CARGO_CFG_TARGET_ARCH", &["x86_64", "aarch64"])
        && is("CARGO_CFG_TARGET_POINTER_WIDTH", &["64"])
}

/// Builds the library. Its flags are its own, whatever this build's are.
fn build(package: &Path, target: &str, folder: &Path) {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--lib", "--release", "--target", target, "--target-dir"]).arg(folder);
    cargo.current_dir(package);
    for name in [
        "RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET",
    ] {
        cargo.env_remove(name);
    }
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")));
    let sources = package.parent().unwrap_or(package);
    // Its hooks need thread-locals of their own: `memreport/src/thread.rs`. The folders of this
    // machine are no part of it.
    let mut flags = "--cfg=memreport_preload".to_owned();
    for (folder, name) in [(Some(sources), "memreport"), (home.as_deref(), "cargo")] {
        if let Some(folder) = folder.and_then(|folder| folder.canonicalize().ok()) {
            flags += &format!("\x1f--remap-path-prefix={}={name}", folder.display());
        }
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags);
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "0").env("CARGO_PROFILE_RELEASE_STRIP", "true");
    cargo.env("CARGO_INCREMENTAL", "0");
    if variable("PROFILE") == "debug" {
        cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    }
    let status = cargo.status().unwrap_or_else(|error| panic!("cargo cannot be run: {error}"));
    assert!(status.success(), "the library to preload cannot be built: {cargo:?}");
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn write(file: &Path, bytes: &[u8]) {
    fs::write(file, bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
