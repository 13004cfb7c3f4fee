//! Reads the memory limit of the process: its control group's, or the machine's memory without one.

use std::fs;
use std::path::{Path, PathBuf};

/// The kernel's files, below `/` or a test's folder.
#[derive(Clone, Debug)]
pub(super) struct KernelFiles {
    root: PathBuf,
}

/// The used part of a limit, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) used: u64,
    pub(super) limit: u64,
}

impl Usage {
    pub(super) fn percent(self) -> u64 {
        // Rounds down, and cannot overflow.
        self.used.checked_div(self.limit / 100).unwrap_or(0)
    }
}

impl Default for KernelFiles {
    fn default() -> Self {
        KernelFiles { root: PathBuf::from("/") }
    }
}

impl KernelFiles {
    #[cfg(test)]
    fn at(root: &Path) -> Self {
        KernelFiles { root: root.to_owned() }
    }

    /// Returns the tightest limit of the process's control groups, of version 2 or 1. Without one,
    /// returns the machine's memory.
    pub(super) fn memory(&self) -> Option<Usage> {
        self.control_group().or_else(|| self.machine())
    }

    /// Returns the percentage of time in which some task of the control group, or of the machine,
    /// waited for memory lately: `some avg10` of `memory.pressure`.
    pub(super) fn pressure(&self) -> Option<f64> {
        let own = self.group("").map(|(base, path)| base.join(path).join("memory.pressure"));
        let text = own
            .and_then(|file| fs::read_to_string(file).ok())
            .or_else(|| self.read("proc/pressure/memory"))?;
        let some = text.lines().find(|line| line.starts_with("some "))?;
        some.split(' ').find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
    }

    fn control_group(&self) -> Option<Usage> {
        let v2 = ("", "sys/fs/cgroup", "memory.current", "memory.max");
        let v1 =
            ("memory", "sys/fs/cgroup/memory", "memory.usage_in_bytes", "memory.limit_in_bytes");
        [v2, v1].into_iter().find_map(|(controller, _, used, limit)| {
            let (base, path) = self.group(controller)?;
            // A group's limit applies to the groups below it.
            let groups = path.ancestors().map(|path| base.join(path));
            groups
                .filter_map(|group| {
                    let limit = number(&group.join(limit))?;
                    Some(Usage { used: number(&group.join(used))?, limit })
                })
                // Version 1 writes a number that no machine has if there is no limit.
                .filter(|found| found.limit < 1 << 60)
                .max_by_key(|found| found.percent())
        })
    }

    /// Returns the mount and the path of the process's group. An empty controller name selects
    /// version 2.
    fn group(&self, controller: &str) -> Option<(PathBuf, PathBuf)> {
        let text = self.read("proc/self/cgroup")?;
        let path = text.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let path = fields.next()?;
            controllers.split(',').any(|name| name == controller).then_some(path)
        })?;
        let mount = if controller.is_empty() { "sys/fs/cgroup" } else { "sys/fs/cgroup/memory" };
        Some((self.root.join(mount), Path::new(path.trim_start_matches('/')).to_owned()))
    }

    fn machine(&self) -> Option<Usage> {
        let text = self.read("proc/meminfo")?;
        let kib = |key: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse().ok()
        };
        let limit = kib("MemTotal")? * 1024;
        Some(Usage { used: limit.saturating_sub(kib("MemAvailable")? * 1024), limit })
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// Reads the number in a file. The word `max` is none.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a kernel with these files.
    fn kernel(name: &str, files: &[(&str, &str)]) -> (KernelFiles, PathBuf) {
        let root = std::env::temp_dir().join(format!("memreport-{name}-{}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        (KernelFiles::at(&root), root)
    }

    #[test]
    fn the_tightest_limit_counts_in_both_versions_and_the_machines_without() {
        let meminfo = ("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\n");
        let (own, root) = kernel(
            "v2",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/b/memory.current", "70\n"),
                ("sys/fs/cgroup/a/memory.max", "1000\n"),
                ("sys/fs/cgroup/a/memory.current", "809\n"),
                (
                    "sys/fs/cgroup/a/b/memory.pressure",
                    "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=1.00 total=1\n",
                ),
                meminfo,
            ],
        );
        assert_eq!(own.memory(), Some(Usage { used: 809, limit: 1000 }));
        assert_eq!(own.memory().unwrap().percent(), 80);
        assert_eq!(own.pressure(), Some(12.5));
        fs::remove_dir_all(root).unwrap();

        let (old, root) = kernel(
            "v1",
            &[
                ("proc/self/cgroup", "5:cpu,memory:/x\n0::/x\n"),
                ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "200\n"),
                ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "50\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"),
            ],
        );
        assert_eq!(old.memory(), Some(Usage { used: 50, limit: 200 }));
        assert_eq!(old.pressure(), None);
        fs::remove_dir_all(root).unwrap();

        let (none, root) = kernel("none", &[("proc/self/cgroup", "0::/\n"), meminfo]);
        assert_eq!(none.memory(), Some(Usage { used: 750 * 1024, limit: 1000 * 1024 }));
        fs::remove_dir_all(root).unwrap();
    }
}
