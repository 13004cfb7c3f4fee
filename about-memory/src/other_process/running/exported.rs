//! Finds functions and code in the modules of a running program, by their files.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind};
use rustix::fs::{Mode, OFlags};

use crate::other_process::Mapping;

const PAGE: u64 = 4096;

/// The most bytes of a module that are read.
const MAX_MODULE: u64 = 1 << 30;

/// Returns the addresses of the functions that a module exports; `None` if its file is no module,
/// or cannot be read.
pub(crate) fn exported(pid: u32, module: &Mapping) -> Option<BTreeMap<String, u64>> {
    let cache = ReadCache::new(file_of(pid, module)?);
    let parsed = object::File::parse(&cache).ok()?;
    let bias = bias(&parsed, module)?;
    let symbols = parsed.dynamic_symbols().filter(|symbol| symbol.is_definition());
    Some(
        symbols
            .filter_map(|symbol| {
                Some((symbol.name().ok()?.to_owned(), bias.wrapping_add(symbol.address())))
            })
            .collect(),
    )
}

/// Returns the first of these texts that is in a module's constants.
pub(crate) fn find_text<'t>(pid: u32, module: &Mapping, texts: &[&'t str]) -> Option<&'t str> {
    let cache = ReadCache::new(file_of(pid, module)?);
    let parsed = object::File::parse(&cache).ok()?;
    let is_constant =
        |kind| matches!(kind, SectionKind::ReadOnlyData | SectionKind::ReadOnlyString);
    let sections = parsed.sections().filter(|section| is_constant(section.kind()));
    let constants: Vec<&[u8]> = sections.filter_map(|section| section.data().ok()).collect();
    let has = |text: &str| {
        let mut windows = constants.iter().flat_map(|bytes| bytes.windows(text.len()));
        windows.any(|bytes| bytes == text.as_bytes())
    };
    texts.iter().copied().find(|text| has(text))
}

/// Returns the address of the first place in a module's code with these bytes.
pub(super) fn find_code(pid: u32, module: &Mapping, code: &[u8]) -> Option<u64> {
    let cache = ReadCache::new(file_of(pid, module)?);
    let parsed = object::File::parse(&cache).ok()?;
    let bias = bias(&parsed, module)?;
    parsed.sections().filter(|section| section.kind() == SectionKind::Text).find_map(|section| {
        let at = section.data().ok()?.windows(code.len()).position(|bytes| bytes == code)?;
        Some(bias.wrapping_add(section.address()).wrapping_add(at as u64))
    })
}

/// Returns what is added to a module's own addresses where it is loaded.
fn bias<'data>(parsed: &impl Object<'data>, module: &Mapping) -> Option<u64> {
    let first = parsed.segments().map(|segment| segment.address()).min()?;
    Some(module.range.start.wrapping_sub(first & !(PAGE - 1)))
}

/// Opens the file of a module, as the process sees it.
pub(crate) fn file_of(pid: u32, module: &Mapping) -> Option<File> {
    let path = module.path.trim_end_matches(" (deleted)");
    let inside = format!("/proc/{pid}/root{path}");
    // Of a file that was replaced since, only the mapping leads to the old one.
    let Range { start, end } = module.range;
    let mapped = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    [inside, mapped].into_iter().find_map(|file| open(&file, module.inode))
}

/// Opens the file of a module, if it has this number. The process may have put something else in
/// its place, such as a pipe, on which nothing must wait.
fn open(path: &str, inode: u64) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let found = file.metadata().ok()?;
    (found.is_file() && found.ino() == inode && found.len() < MAX_MODULE).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::other_process::mappings;

    #[test]
    fn texts_are_found_in_the_constants_of_a_module() {
        let own = std::process::id();
        let path = std::env::current_exe().expect("a path").to_string_lossy().into_owned();
        let mappings = mappings(own).expect("it is this process");
        let module = mappings.iter().find(|mapping| mapping.path == path).expect("its own file");
        // Put together here, so that it is no constant.
        let absent = ["not a ", "constant"].concat();
        let texts = [&*absent, "a constant of this test"];
        assert_eq!(find_text(own, module, &texts), Some("a constant of this test"));
        assert_eq!(find_text(own, module, &texts[..1]), None);
    }
}
