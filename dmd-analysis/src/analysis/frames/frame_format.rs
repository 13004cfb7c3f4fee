//! Frames as text for people: with short paths, and without the library frames in front.

use super::parts::Parts;
use super::source_file::{is_rust_library, registry_path};
use super::trim::{library_frames, parts};
use crate::read::{Dump, TraceId};

/// The style in which frames are printed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Style<'a> {
    /// The program's directory, which its paths are printed without.
    pub(crate) root: Option<&'a str>,
    /// The columns of a line; 0 for any number.
    pub(crate) width: usize,
}

impl Style<'_> {
    /// Returns a frame as `subject::Lexicon::intern (src/lexicon.rs:41)`, cut to `width - indent`
    /// columns if possible.
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

    /// Returns the path of a file without the program's directory, the registry's or the
    /// toolchain's.
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

/// Returns `text`, with `…` for its middle if it is longer than `room` columns.
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

/// Returns the frames of a stack as text, `subject::Lexicon::intern (src/lexicon.rs:41)`, innermost
/// first. The frames of libraries, the allocator and the tracker in front are left out.
#[must_use]
pub fn stack_as_read(dump: &Dump, trace: TraceId) -> Vec<String> {
    let frames = parts(dump, dump.trace(trace));
    let style = Style::default();
    frames[library_frames(&frames)..].iter().map(|parts| style.frame(parts, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Parts, Style, shorten, stack_as_read};
    use crate::read::{Dump, Frame, FrameId, TraceId};

    #[test]
    fn frames_are_taken_apart_and_printed_in_short() {
        const REGISTRY: &str = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let rustc = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860";
        let table = [
            // text of the frame, printed as, crate, is library, is own
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
                (parts.crate_name().as_deref(), parts.is_library(), parts.is_own()),
                (krate, library, own),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_frame_fits_its_line_if_24_columns_are_left_for_the_function() {
        let file = "shop::pages::Decoder::decode_all_pages (src/a.rs:7)";
        let table = [
            // the text of the frame, the columns, the indent, printed as
            (file, 0, 9, file),
            (file, 51, 0, file),
            (file, 50, 0, "shop::pages::Decod…::decode_all_pages (src/a.rs:7)"),
            (file, 48, 4, "shop::pages::De…ecode_all_pages (src/a.rs:7)"),
            (file, 10, 4, "shop::pages:…e_all_pages (src/a.rs:7)"),
            ("shop::load (src/main.rs)", 80, 0, "shop::load (src/main.rs)"),
            ("shop::load", 80, 0, "shop::load"),
        ];
        for (text, width, indent, expected) in table {
            let frame = Frame { text: format!("#00: {text}").into(), symbol: None };
            let style = Style { root: None, width };
            assert_eq!(style.frame(&Parts::of(&frame), indent), expected, "{width}, {indent}");
        }
    }

    #[test]
    fn a_file_loses_the_folders_before_the_programs_or_the_librarys_own() {
        let table = [
            // the program's directory, the file, printed as
            (Some("/home/me/shop"), "/home/me/shop/src/a.rs", "src/a.rs"),
            (Some("/home/me/shop/"), "/home/me/shop/src/a.rs", "src/a.rs"),
            (Some("/home/me/shop"), "/home/me/shopping/src/a.rs", "/home/me/shopping/src/a.rs"),
            (Some(""), "/src/a.rs", "/src/a.rs"),
            (None, "/home/me/library/src/a.rs", "/home/me/library/src/a.rs"),
            (None, "/rustc/0123/library/alloc/src/a.rs", "library/alloc/src/a.rs"),
            (None, "/cargo/registry/src/index-1/slab-0.4/src/a.rs", "slab-0.4/src/a.rs"),
        ];
        for (root, file, expected) in table {
            assert_eq!(Style { root, width: 0 }.file(file), expected, "{file} in {root:?}");
        }
    }

    #[test]
    fn a_stack_begins_behind_the_frames_of_libraries() {
        let frames = ["__rust_alloc", "shop::load (src/main.rs:12)", "shop::main (src/main.rs:40)"];
        let frame = |text| Frame { text: format!("#00: {text}").into(), symbol: None };
        let dump = Dump {
            frames: frames.map(frame).into(),
            traces: vec![(0..3).map(FrameId).collect()],
            ..Dump::default()
        };
        assert_eq!(stack_as_read(&dump, TraceId(0)), frames[1..]);
    }

    #[test]
    fn long_names_lose_their_middle() {
        let table = [("abcdef", 6, "abcdef"), ("abcdefgh", 5, "ab…gh"), ("äöüäöü", 4, "äö…ü")];
        for (text, room, expected) in table {
            assert_eq!(shorten(text, room), expected);
        }
    }
}
