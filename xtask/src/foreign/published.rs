//! Programs of crates.io, in copies whose only changes are the lines that the guide asks for.

use std::fs;
use std::path::PathBuf;

use super::{Bench, folder};
use crate::build::{self, sources};
use crate::failure::Failure;

/// A published program. Its version is fixed, so that the added lines find their places.
pub(super) struct Published {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    pub(super) program: &'static str,
    /// The file with `main`, from the package's folder.
    pub(super) main: &'static str,
    /// The line with which `main` begins, if the program is to serve its reports.
    pub(super) begin: Option<&'static str>,
    /// Its own features, without those that declare an allocator.
    pub(super) features: &'static [&'static str],
}

/// The allocator of a build, and the features that select it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Allocator {
    System,
    SystemDmd,
    /// With frame pointers.
    SystemDmdFramed,
    Jemalloc,
    JemallocDmd,
    /// jemalloc, built with its profiler.
    JemallocProfiler,
}

impl Allocator {
    fn features(self) -> &'static [&'static str] {
        match self {
            Allocator::System => &[],
            Allocator::SystemDmd | Allocator::SystemDmdFramed => &["dmd"],
            Allocator::Jemalloc => &["jemalloc"],
            Allocator::JemallocDmd => &["jemalloc", "dmd"],
            Allocator::JemallocProfiler => &["jemalloc", "profiler"],
        }
    }
}

/// The features that are added to a manifest.
const FEATURES: &str = r#"[features]
dmd = ["dep:memreport", "dep:memreport-dmd"]
jemalloc = ["dep:tikv-jemallocator", "memreport-dmd?/jemalloc"]
profiler = ["tikv-jemallocator/profiling"]
"#;

/// The addition to the end of a manifest, but for the paths of our packages.
const MANIFEST: &str = r#"
[workspace]

[dependencies.tikv-jemallocator]
version = "0.7"
optional = true

[profile.dev.package.memreport]
opt-level = 3

[profile.dev.package.memreport-dmd]
opt-level = 3
"#;

/// The addition to the end of the file with `main`.
const ALLOCATOR: &str = r#"
#[cfg(all(feature = "jemalloc", not(feature = "dmd")))]
#[global_allocator]
static JEMALLOC: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(all(feature = "jemalloc", feature = "dmd"))]
dmd::global_allocator!(tikv_jemallocator::Jemalloc);

#[cfg(all(not(feature = "jemalloc"), feature = "dmd"))]
dmd::global_allocator!();
"#;

/// The addition to the beginning of `main`.
const SERVE: &str = "    #[cfg(feature = \"dmd\")]\n    memreport::serve()?;\n";

/// A copy of a published program.
pub(super) struct Prepared<'a> {
    published: &'a Published,
    folder: PathBuf,
}

impl Published {
    /// Fetches the program and makes a copy with the added lines.
    pub(super) fn prepare(&self, bench: &Bench) -> Result<Prepared<'_>, Failure> {
        let copy = bench.file(self.package);
        sources::copy(&self.fetch(bench)?, &copy)?;
        let manifest = copy.join("Cargo.toml");
        let text = fs::read_to_string(&manifest)?;
        let mut text = match text.replacen("[features]\n", FEATURES, 1) {
            added if added != text => added,
            _ => text + "\n" + FEATURES,
        } + MANIFEST;
        for (package, folder) in [("memreport", "memreport"), ("memreport-dmd", "dmd")] {
            let path = build::root().join(folder);
            text += &format!("\n[dependencies.{package}]\npath = {path:?}\noptional = true\n");
        }
        fs::write(&manifest, text)?;
        let main = copy.join(self.main);
        let mut text = fs::read_to_string(&main)?;
        if let Some(begin) = self.begin {
            if !text.contains(begin) {
                return Err(format!("`main` of {} is not where it was", self.package).into());
            }
            text = text.replace(begin, &format!("{begin}{SERVE}"));
        }
        fs::write(&main, text + ALLOCATOR)?;
        Ok(Prepared { published: self, folder: copy })
    }

    /// Returns the folder to which cargo has unpacked the program. `cargo metadata` lists no
    /// package without a library, but cargo unpacks those too.
    fn fetch(&self, bench: &Bench) -> Result<PathBuf, Failure> {
        let Published { package, version, .. } = self;
        let fetching = bench.file(&format!("fetching-{package}"));
        fs::create_dir_all(fetching.join("src"))?;
        fs::write(fetching.join("src/lib.rs"), "")?;
        let text = format!(
            "[package]\nname = \"fetching\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\n{package} = \"={version}\"\n"
        );
        fs::write(fetching.join("Cargo.toml"), text)?;
        let mut fetch = build::cargo();
        fetch.args(["fetch", "--quiet", "--manifest-path"]).arg(fetching.join("Cargo.toml"));
        let is_fetched = fetch.status()?.success();
        let registries = build::cargo_home()?.join("registry/src");
        for registry in fs::read_dir(registries)? {
            let folder = registry?.path().join(format!("{package}-{version}"));
            if is_fetched && folder.is_dir() {
                return Ok(folder);
            }
        }
        Err(format!("cargo did not fetch {package} {version}").into())
    }
}

impl Prepared<'_> {
    /// Returns the path of a file of the copy.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Builds the program over an allocator. Later calls return the same file, which may be
    /// running. Builds with frame pointers have their own folder.
    pub(super) fn build(&self, allocator: Allocator, is_dev: bool) -> Result<PathBuf, Failure> {
        // The next build of another one replaces the program, so it is kept here.
        let profile = if is_dev { "dev" } else { "release" };
        let kept = self.folder.join(format!("{}-{allocator:?}-{profile}", self.published.program));
        if kept.exists() {
            return Ok(kept);
        }
        let is_framed = allocator == Allocator::SystemDmdFramed;
        let mut build = build::cargo();
        build.args(["build", "--no-default-features", "--manifest-path"]);
        build.arg(self.folder.join("Cargo.toml"));
        build.args((!is_dev).then_some("--release"));
        let features = [self.published.features, allocator.features()].concat();
        build.arg("--features").arg(features.join(","));
        let target = folder().join("target").join(self.published.package);
        build.env("CARGO_TARGET_DIR", if is_framed { target.join("framed") } else { target });
        // As the guide recommends for symbols. Programs may have a release profile of their own.
        build.env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
        let answer = if is_framed { "yes" } else { "no" };
        // The warnings are the program's own.
        build.env("RUSTFLAGS", format!("-Cforce-frame-pointers={answer} --cap-lints=allow"));
        let built = build::executable(&mut build, self.published.program)?;
        fs::copy(built, &kept)?;
        Ok(kept)
    }
}
