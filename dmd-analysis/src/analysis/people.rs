//! Frames as people read them: without the standard library in front, with short paths, and with whose code it is.

use super::alloc_fns::is_allocation;
use crate::read::{Dump, Frame, FrameId, Symbol, TraceId};
use crate::symbols::Address;

/// A frame taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) function: &'a str,
    /// The function's own name with type arguments, if debug information has it.
    pub(crate) name: Option<&'a str>,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
    /// Whether the type arguments may be those of another function: code that several functions share.
    pub(crate) out_of_line: bool,
    pub(crate) folded: bool,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(frame: &'a Frame) -> Self {
        match &frame.symbol {
            Some(symbol) => Self::of_symbol(symbol),
            None => Self::of_text(&frame.text),
        }
    }

    fn of_symbol(symbol: &'a Symbol) -> Self {
        Self {
            function: &symbol.function,
            name: symbol.name.as_deref(),
            file: symbol.file.as_deref(),
            line: symbol.line,
            out_of_line: !symbol.inlined,
            folded: symbol.folded,
        }
    }

    /// What stands where there is no frame.
    pub(crate) fn of_words(words: &'a str) -> Self {
        Self {
            function: words,
            name: None,
            file: None,
            line: None,
            out_of_line: true,
            folded: false,
        }
    }

    /// From `#00: function (file:line)` or `#00: function[file:line]`.
    fn of_text(text: &'a str) -> Self {
        let text = text.split_once(": ").map_or(text, |(_, text)| text);
        let place = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let (function, place) =
            place.map_or((text, None), |(function, place)| (function, Some(place)));
        let (file, line) = match place.and_then(|place| place.rsplit_once(':')) {
            Some((file, line)) => (Some(file), line.parse().ok()),
            None => (place, None),
        };
        Self { function, name: None, file, line, out_of_line: true, folded: false }
    }

    /// The function as it is shown. The symbol table has the path, debug information the type arguments: a path where there
    /// is one.
    pub(crate) fn shown(&self) -> &'a str {
        self.name.filter(|_| !self.function.contains("::")).unwrap_or(self.function)
    }

    /// Whether it belongs to Rust's own libraries, to an allocator or to the tracker.
    pub(crate) fn is_library(&self) -> bool {
        const PATHS: [&str; 6] =
            ["alloc::", "core::", "std::", "hashbrown::", "dmd::track::", "mozilla::dmd::"];
        const C: [&str; 8] = [
            "malloc",
            "calloc",
            "realloc",
            "memalign",
            "posix_memalign",
            "aligned_alloc",
            "operator new",
            "__libc_",
        ];
        // Before Rust's `main` and its threads, the same in every program; and where panics are caught.
        const STARTS: [&str; 6] =
            ["_start", "__libc_start_main", "start_thread", "clone", "clone3", "__rust_try"];
        let path = self.function.trim_start_matches(['<', '&']);
        self.is_allocator_entry()
            || (self.file.is_none() && self.function == "main")
            || STARTS.contains(&self.function)
            || self
                .file
                .is_some_and(|file| is_rust_library(file) || is_hashbrown(file) || is_tracker(file))
            || PATHS.iter().any(|prefix| path.starts_with(prefix))
            || C.iter().any(|prefix| self.function.starts_with(prefix))
    }

    /// Whether it is the door between a program and its allocator. What lies further in is the allocator's or the
    /// tracker's, whoever wrote it.
    pub(crate) fn is_allocator_entry(&self) -> bool {
        // Not all that begins so: `__rust_begin_short_backtrace` is where a thread begins.
        const SHIMS: [&str; 6] = [
            "__rust_alloc",
            "__rust_realloc",
            "__rdl_alloc",
            "__rdl_realloc",
            "__rg_alloc",
            "__rg_realloc",
        ];
        let function = self.function.strip_prefix("__rustc::").unwrap_or(self.function);
        SHIMS.iter().any(|prefix| function.starts_with(prefix))
            || self.function.contains("GlobalAlloc>::")
    }

    /// The crate the code is from, as `serde_json`, if its place or path tells.
    pub(crate) fn crate_name(&self) -> Option<&'a str> {
        if let Some(krate) = self.file.and_then(registry_crate) {
            // The directory is `serde_json-1.0.145`.
            return Some(krate.rsplit_once('-').map_or(krate, |(name, _)| name));
        }
        if let Some(file) = self.file.filter(|file| is_rust_library(file)) {
            return file.split_once("library/")?.1.split('/').next();
        }
        let path = self.function.trim_start_matches(['<', '&', '_']);
        path.split_once("::").map(|(krate, _)| krate).filter(|krate| krate.chars().all(is_word))
    }

    /// Whether it is the program's own code: no library, nothing from a registry.
    pub(crate) fn is_own(&self) -> bool {
        let has_place = self
            .file
            .is_some_and(|file| registry_crate(file).is_none() && !file.starts_with("/usr/"));
        has_place && !self.is_library()
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_rust_library(file: &str) -> bool {
    file.starts_with("library/")
        || (file.starts_with("/rustc/") || file.contains("/rustlib/")) && file.contains("/library/")
}

fn is_hashbrown(file: &str) -> bool {
    file.contains("/hashbrown-") || file.contains("/rust/deps/")
}

/// Whether `file` is of the part of this crate that runs in the measured program.
fn is_tracker(file: &str) -> bool {
    let is_tracker = |part: &str| part == "dmd" || part.starts_with("memreport-dmd-");
    let mut parts = file.split('/').skip_while(|part| !is_tracker(part));
    let own = parts.next().is_some() && parts.next() == Some("src");
    own && parts
        .next()
        .is_some_and(|part| !matches!(part, "analysis" | "dump" | "symbols" | "export"))
}

/// `serde_json-1.0.145` of a file in cargo's registry or among its checkouts.
fn registry_crate(file: &str) -> Option<&str> {
    registry_path(file)?.split('/').next()
}

fn registry_path(file: &str) -> Option<&str> {
    let rest = file.split_once("/registry/src/").or_else(|| file.split_once("/git/checkouts/"))?.1;
    Some(rest.split_once('/')?.1)
}

/// How frames are shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Style<'a> {
    /// The program's directory, left out of its paths.
    pub(crate) root: Option<&'a str>,
    /// Columns that a line may take; 0 for any number.
    pub(crate) width: usize,
}

impl Style<'_> {
    /// `subject::Lexicon::intern (src/lexicon.rs:41)`, in `width - indent` columns if that can be.
    pub(crate) fn frame(&self, parts: &Parts<'_>, indent: usize) -> String {
        let function = parts.shown().to_owned();
        let place = match (parts.file, parts.line) {
            (Some(file), Some(line)) => format!(" ({}:{line})", self.file(file)),
            (Some(file), None) => format!(" ({})", self.file(file)),
            _ => String::new(),
        };
        let room = self.width.saturating_sub(indent + place.chars().count());
        let shown = if self.width == 0 { function } else { shorten(&function, room.max(24)) };
        shown + &place
    }

    pub(crate) fn file<'f>(&self, file: &'f str) -> &'f str {
        if let Some(root) = self.root.filter(|root| !root.is_empty()) {
            let inside = file
                .strip_prefix(root.trim_end_matches('/'))
                .and_then(|rest| rest.strip_prefix('/'));
            if let Some(inside) = inside {
                return inside;
            }
        }
        if let Some(path) = registry_path(file) {
            return path;
        }
        match file.find("/library/") {
            Some(at) if is_rust_library(file) => &file[at + 1..],
            _ => file,
        }
    }
}

/// `text` with its middle left out if it is longer than `room` columns.
#[must_use]
pub fn shorten(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let end = room.saturating_sub(1) / 2;
    let start = room.saturating_sub(1) - end;
    let head: String = text.chars().take(start).collect();
    let tail: String = text.chars().skip(length - end).collect();
    format!("{head}…{tail}")
}

/// The frames of a stack as people read them, the innermost first, without the libraries, the allocator and the tracker in front
/// of whoever asked for the block: `subject::Lexicon::intern (src/lexicon.rs:41)`.
#[must_use]
pub fn stack_as_read(dump: &Dump, trace: TraceId) -> Vec<String> {
    let frames = parts(dump, dump.trace(trace));
    let style = Style::default();
    frames[library_frames(&frames)..].iter().map(|parts| style.frame(parts, 0)).collect()
}

/// How many frames in front are the allocator's or the tracker's.
fn behind_door(frames: &[Parts<'_>]) -> usize {
    frames.iter().rposition(Parts::is_allocator_entry).map_or(0, |at| at + 1)
}

/// How many frames in front are the libraries', the allocator's or the tracker's.
pub(crate) fn library_frames(frames: &[Parts<'_>]) -> usize {
    let behind_door = behind_door(frames);
    behind_door + frames[behind_door..].iter().take_while(|parts| parts.is_library()).count()
}

/// The frames of a stack, taken apart.
pub(crate) fn parts<'a>(dump: &'a Dump, trace: &[FrameId]) -> Vec<Parts<'a>> {
    trace.iter().map(|frame| Parts::of(&dump.frames[frame.index()])).collect()
}

/// The frames of a stack without those of the allocator and the tracker in front, and without allocation functions; if there
/// is nothing else, those.
pub(crate) fn without_allocator<'a>(dump: &'a Dump, trace: &[FrameId]) -> Vec<Parts<'a>> {
    let frames = parts(dump, trace);
    let behind_door = behind_door(&frames);
    // A frame that was not looked up may be anything.
    let is_allocation = |(parts, frame): &(&Parts<'_>, &FrameId)| {
        Address::of_text(parts.function).is_none()
            && is_allocation(&dump.frames[frame.index()].text)
    };
    let rest = frames.iter().zip(trace).skip(behind_door).skip_while(is_allocation);
    let kept: Vec<Parts<'_>> = rest.map(|(parts, _)| *parts).collect();
    if kept.is_empty() { frames } else { kept }
}

/// The frames of a stack that are not the libraries'; if there is nothing else, those that are.
///
/// What the standard library does in between (iterators, closures called, threads begun) is known to whoever wrote the
/// frames around it, and what is beyond `main` is the same in every stack.
pub(crate) fn without_library<'a>(dump: &'a Dump, trace: &[FrameId]) -> Vec<Parts<'a>> {
    let frames = parts(dump, trace);
    let rest = frames[library_frames(&frames)..].iter().filter(|parts| !parts.is_library());
    let kept: Vec<Parts<'_>> = rest.copied().collect();
    match frames.get(behind_door(&frames)..) {
        Some(all @ [_, ..]) if kept.is_empty() => all.to_vec(),
        _ if kept.is_empty() => frames,
        _ => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Parts, Style, shorten};

    #[test]
    fn a_stack_of_libraries_begins_behind_the_allocator() {
        let dump = crate::read::read_slice(
            br##"{"version": 5, "invocation": {"dmdEnvVar": null, "mode": "live"},
                "blockList": [{"req": 1, "alloc": "A"}], "traceTable": {"A": ["B", "C", "D", "E"]},
                "frameTable": {"B": "#00: dmd::track::sites::here (dmd/src/track/sites.rs:7)",
                    "C": "#00: __rust_alloc (dmd/src/track/hooks.rs:9)",
                    "D": "#00: alloc::alloc::alloc (/rustc/1/library/alloc/src/alloc.rs:9)",
                    "E": "#00: std::rt::lang_start (/rustc/1/library/std/src/rt.rs:9)"}}"##,
        );
        let dump = dump.expect("it is a dump");
        let trace = dump.trace(dump.blocks[0].alloc.expect("it has a stack"));
        let shown = super::without_library(&dump, trace);
        assert_eq!(shown.first().map(|parts| parts.function), Some("alloc::alloc::alloc"));
    }

    #[test]
    fn frames_are_taken_apart_and_put_in_few_words() {
        const REGISTRY: &str = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let rustc = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860";
        let table = [
            // text of the frame, shown as, whose crate, library, own
            (
                "#00: subject::Lexicon::intern (/home/me/subject/src/lexicon.rs:41)".to_owned(),
                "subject::Lexicon::intern (src/lexicon.rs:41)",
                Some("subject"),
                false,
                true,
            ),
            (
                format!(
                    "#00: serde_json::de::from_str ({REGISTRY}/serde_json-1.0.145/src/de.rs:7)"
                ),
                "serde_json::de::from_str (serde_json-1.0.145/src/de.rs:7)",
                Some("serde_json"),
                false,
                false,
            ),
            (
                format!("#00: push<u8> ({rustc}/library/alloc/src/vec/mod.rs:9)"),
                "push<u8> (library/alloc/src/vec/mod.rs:9)",
                Some("alloc"),
                true,
                false,
            ),
            (
                "#00: <alloc::vec::Vec<u8>>::push".to_owned(),
                "<alloc::vec::Vec<u8>>::push",
                Some("alloc"),
                true,
                false,
            ),
            (
                "#00: __libc_malloc (/usr/src/malloc.c:3)".to_owned(),
                "__libc_malloc (/usr/src/malloc.c:3)",
                None,
                true,
                false,
            ),
            ("#00: ???[/usr/bin/x +0x12]".to_owned(), "???[/usr/bin/x +0x12]", None, false, false),
        ];
        let style = Style { root: Some("/home/me/subject"), width: 0 };
        for (text, shown, krate, library, own) in table {
            let frame = Frame { text: text.into(), symbol: None };
            let parts = Parts::of(&frame);
            assert_eq!(style.frame(&parts, 0), shown);
            assert_eq!(
                (parts.crate_name(), parts.is_library(), parts.is_own()),
                (krate, library, own),
                "{shown}"
            );
        }
    }

    #[test]
    fn long_names_lose_their_middle() {
        let table = [("abcdef", 6, "abcdef"), ("abcdefgh", 5, "ab…gh"), ("äöüäöü", 4, "äö…ü")];
        for (text, room, expected) in table {
            assert_eq!(shorten(text, room), expected);
        }
    }
}
