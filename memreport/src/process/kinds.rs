//! Divides resident memory by kind: program, libraries, other files, stacks, shared memory, heap,
//! rest.

use std::collections::BTreeMap;

use super::bytes;
use super::smaps::Mapping;
use super::stacks::Stacks;
use crate::report::Report;

/// Files and libraries with fewer resident bytes are reported together as `other`.
const SMALL: u64 = 512 << 10;

/// The most bytes of an unnamed mapping that count as a library's zeroed data.
///
/// Zeroed data follows the last mapping of the library's file. Other memory may follow it directly,
/// so a larger mapping is not the library's.
const LARGEST_ZEROED: u64 = 1 << 20;

/// Resident bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    rss: u64,
    pss: u64,
}

/// The sums of all mappings, by the path below `rss` and `pss`.
#[derive(Debug)]
pub(super) struct Kinds {
    sums: BTreeMap<String, Sum>,
}

impl Kinds {
    /// Adds up the mappings. Bytes of the stacks were already subtracted from their mappings.
    pub(super) fn new(mappings: &[Mapping], stacks: &Stacks, anonymize: bool) -> Self {
        let program = std::env::current_exe().unwrap_or_default();
        Kinds::of(mappings, stacks.resident(), (&program.to_string_lossy(), anonymize))
    }

    fn of(mappings: &[Mapping], stacks: (u64, u64), (program, anonymize): (&str, bool)) -> Self {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        let mut add = |path: String, rss: u64, pss: u64| {
            let sum = sums.entry(path).or_default();
            sum.rss += rss;
            sum.pss += pss;
        };
        add("stacks".to_owned(), stacks.0, stacks.1);
        let mut before: Option<(&Mapping, String)> = None;
        for mapping in mappings {
            let path = before
                .as_ref()
                .filter(|(before, path)| is_zeroed_data(before, path, mapping))
                .map_or_else(|| path_of(mapping, program, anonymize), |(_, path)| path.clone());
            add(path.clone(), mapping.rss, mapping.pss);
            before = Some((mapping, path));
        }
        let mut kinds = Kinds { sums: BTreeMap::new() };
        for (path, sum) in sums {
            let group = path.split_once('/').map(|(group, _)| group);
            let path = match group {
                Some(group) if sum.rss < SMALL && group != "program" => format!("{group}/other"),
                _ => path,
            };
            let gathered = kinds.sums.entry(path).or_default();
            gathered.rss += sum.rss;
            gathered.pss += sum.pss;
        }
        kinds
    }

    pub(super) fn report(&self, reports: &mut Vec<Report>) {
        for (path, sum) in &self.sums {
            let what = description(path.split('/').next().unwrap_or_default());
            let rss = format!("Resident: {what} From /proc/self/smaps.");
            reports.push(Report::other(format!("rss/{path}"), bytes(sum.rss), rss));
            let pss = format!(
                "Resident, less the shares of other processes: {what} From /proc/self/smaps."
            );
            reports.push(Report::other(format!("pss/{path}"), bytes(sum.pss), pss));
        }
    }
}

fn description(group: &str) -> &'static str {
    match group {
        "program" => "the program's file, code and data.",
        "libraries" => "files of libraries, code and data.",
        "files" => "other files that are mapped.",
        "stacks" => "stacks of threads.",
        "shared" => "memory that is made to be shared with other processes.",
        "heap" => {
            "the segment that grows behind the program's data, which the C library's malloc begins with."
        }
        "anonymous" => {
            "memory that stands for no file: of allocators, and what the program maps itself."
        }
        _ => "what the kernel maps into every process.",
    }
}

/// Returns whether a mapping is the zeroed data of the module mapped before it.
fn is_zeroed_data(before: &Mapping, path: &str, mapping: &Mapping) -> bool {
    let group = path.split('/').next().unwrap_or_default();
    let size = mapping.addresses.end - mapping.addresses.start;
    mapping.name.is_empty()
        && before.name.starts_with('/')
        && before.addresses.end == mapping.addresses.start
        && before.permissions == mapping.permissions
        && (group == "program" || group == "libraries" && size <= LARGEST_ZEROED)
}

/// Returns the path of a mapping's kind, such as `libraries/libc.so.6`.
fn path_of(mapping: &Mapping, program: &str, anonymize: bool) -> String {
    let name = mapping.name.strip_suffix(" (deleted)").unwrap_or(&mapping.name);
    let is_shared = mapping.permissions.ends_with('s');
    let shared = ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "[anon_shmem:"];
    if shared.iter().any(|start| name.starts_with(start)) {
        return "shared".to_owned();
    }
    if name.starts_with('/') {
        let base = segment(name.rsplit('/').next().unwrap_or(name));
        return match () {
            () if name == program => format!("program/{base}"),
            () if is_library(&base) => format!("libraries/{base}"),
            () if anonymize => "files/<anonymized>".to_owned(),
            () => format!("files/{base}"),
        };
    }
    match name {
        "" if is_shared => "shared".to_owned(),
        "" => "anonymous/unnamed".to_owned(),
        "[heap]" => "heap".to_owned(),
        "[stack]" => "stacks".to_owned(),
        _ => match name.strip_prefix("[anon:").and_then(|name| name.strip_suffix(']')) {
            Some(name) => format!("anonymous/{}", segment(name)),
            None => "other".to_owned(),
        },
    }
}

fn is_library(base: &str) -> bool {
    base.ends_with(".so") || base.contains(".so.")
}

/// Escapes slashes, which would begin another segment.
fn segment(name: &str) -> String {
    name.replace('/', "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, pages: u64, permissions: &str, name: &str) -> Mapping {
        Mapping {
            addresses: start..start + pages * 4096,
            permissions: permissions.to_owned(),
            name: name.to_owned(),
            rss: pages * 4096,
            pss: pages * 2048,
            ..Mapping::default()
        }
    }

    #[test]
    fn every_mapping_has_its_kind() {
        for (permissions, name, anonymize, path) in [
            ("r-xp", "/srv/bin/server", false, "program/server"),
            ("r-xp", "/srv/bin/server (deleted)", true, "program/server"),
            ("r-xp", "/lib/libc.so.6", true, "libraries/libc.so.6"),
            ("rw-p", "/lib/plugin.so", false, "libraries/plugin.so"),
            ("r--s", "/srv/a.index", false, "files/a.index"),
            ("r--p", "/home/somebody/secret", true, "files/<anonymized>"),
            ("rw-s", "/dev/shm/ring", false, "shared"),
            ("rw-s", "/memfd:frames (deleted)", false, "shared"),
            ("rw-s", "/dev/zero (deleted)", false, "shared"),
            ("rw-p", "[heap]", false, "heap"),
            ("rw-p", "[stack]", false, "stacks"),
            ("rw-p", "", false, "anonymous/unnamed"),
            ("rw-p", "[anon:mimalloc]", false, "anonymous/mimalloc"),
            ("rw-p", "[anon:a/b]", false, "anonymous/a\\b"),
            ("r-xp", "[vdso]", false, "other"),
        ] {
            let mapping = mapping(0, 1, permissions, name);
            assert_eq!(path_of(&mapping, "/srv/bin/server", anonymize), path, "{name}");
        }
    }

    #[test]
    fn every_kind_has_a_description_of_its_own() {
        let kinds = [
            ("program", "the program's file"),
            ("libraries", "files of libraries"),
            ("files", "other files"),
            ("stacks", "stacks of threads"),
            ("shared", "memory that is made to be shared"),
            ("heap", "the segment that grows"),
            ("anonymous", "memory that stands for no file"),
            ("other", "what the kernel maps"),
        ];
        for (kind, words) in kinds {
            assert!(description(kind).starts_with(words), "{kind}: {}", description(kind));
        }
    }

    #[test]
    fn small_segments_are_gathered_and_nothing_is_lost() {
        let mappings = [
            mapping(0x1000, 10, "r-xp", "/srv/bin/server"),
            mapping(0x10000, 10, "rw-p", "/lib/liba.so"),
            // Zeroed data of the preceding library.
            mapping(0x10000 + 10 * 4096, 200, "rw-p", ""),
            mapping(0x90_0000, 10, "rw-p", "/lib/libb.so"),
            mapping(0xa0_0000, 1000, "rw-p", ""),
        ];
        let kinds = Kinds::of(&mappings, (8192, 4096), ("/srv/bin/server", false));
        let rss: Vec<_> =
            kinds.sums.iter().map(|(path, sum)| (path.as_str(), sum.rss / 4096)).collect();
        assert_eq!(
            rss,
            [
                ("anonymous/unnamed", 1000),
                ("libraries/liba.so", 210),
                ("libraries/other", 10),
                ("program/server", 10),
                ("stacks", 2)
            ]
        );
        let pss: u64 = kinds.sums.values().map(|sum| sum.pss).sum();
        assert_eq!(pss, 1230 * 2048 + 4096);
    }

    #[test]
    fn only_programs_and_libraries_have_zeroed_data_behind_their_files() {
        const LARGEST: u64 = LARGEST_ZEROED / 4096;
        for (path, pages, expected) in [
            ("program/server", LARGEST + 1, true),
            ("libraries/liba.so", LARGEST, true),
            ("libraries/liba.so", LARGEST + 1, false),
            ("files/a.index", 1, false),
        ] {
            let before = mapping(0x1000, 1, "rw-p", "/a/file");
            let behind = |start, permissions, name| {
                is_zeroed_data(&before, path, &mapping(start, pages, permissions, name))
            };
            assert_eq!(behind(0x2000, "rw-p", ""), expected, "{pages} pages behind {path}");
            assert!(!behind(0x3000, "rw-p", ""), "not next to it");
            assert!(!behind(0x2000, "r--p", ""), "of other permissions");
            assert!(!behind(0x2000, "rw-p", "[heap]"), "of another kind");
        }
    }
}
