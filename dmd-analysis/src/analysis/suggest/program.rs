//! Facts about the program that a dump contains: its own types, measured types, statics, and links
//! between blocks.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::analysis::frames::{Crates, Parts, Style};
use crate::analysis::records::mode;
use crate::analysis::scan::links::{BlockRanges, Link};
use crate::read::{Dump, Extension, Mode, ReportSite, TraceId};
use crate::symbols::Members;

/// The facts about a program from which suggestions for its blocks follow.
pub(crate) struct ProgramFacts<'d> {
    pub(super) extension: Option<&'d Extension>,
    pub(super) style: &'d Style<'d>,
    /// The types with a field that is measured or skipped.
    pub(super) measured: HashSet<&'d str>,
    /// The statics that point into reported blocks.
    pub(super) reported_statics: HashSet<&'d str>,
    /// The crates of the program's own code.
    pub(super) own_crates: HashSet<Cow<'d, str>>,
    /// By unreported block of a scan, in ascending order: the first word of a reported block that
    /// points at it.
    pointing: Vec<Link>,
    members: &'d Members,
}

/// A reported block that points at one that is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointing<'d> {
    /// The stack that allocated the reported block.
    pub(crate) alloc: Option<TraceId>,
    /// The report of that block.
    pub(super) report: Option<&'d ReportSite>,
    /// The offset of the pointer in it, in bytes.
    pub(super) at: u32,
}

impl<'d> ProgramFacts<'d> {
    /// Collects the facts that a dump contains.
    pub(crate) fn new(dump: &'d Dump, style: &'d Style<'d>, members: &'d Members) -> Self {
        let extension = dump.extension.as_ref();
        let fields =
            extension.iter().flat_map(|ours| ours.measured.iter().chain(ours.skipped.iter()));
        let statics = extension.iter().flat_map(|ours| &ours.reported_statics);
        let own = dump.frames.iter().map(Parts::of).filter(Parts::is_own);
        let crates = Crates::new(dump);
        Self {
            extension,
            style,
            measured: fields.map(|field| without_arguments(&field.type_name)).collect(),
            reported_statics: statics.filter_map(|place| place.name.as_deref()).collect(),
            own_crates: own.filter_map(|parts| crates.of_first(&[parts])).collect(),
            members,
            pointing: pointing_words(dump),
        }
    }

    /// Returns the unreported blocks of a scan at which a reported block points, in their order:
    /// their indices, and the first reported block that points there.
    pub(crate) fn pointing(&self, dump: &'d Dump) -> impl Iterator<Item = (usize, Pointing<'d>)> {
        self.pointing.iter().map(|link| {
            let from = dump.blocks.at(link.from as usize);
            let trace = dump.reports(&from).and_then(<[TraceId]>::first);
            let report = trace.and_then(|trace| self.extension?.reports.get(trace));
            (link.to as usize, Pointing { alloc: from.kind.alloc, report, at: link.at })
        })
    }

    /// Returns the field of a type that contains the byte at this offset.
    pub(super) fn member(&self, of: &str, at: u32) -> Option<&str> {
        self.members.get(of)?.field_at(at.into())
    }

    /// Returns the first type of the program's own in the name of a type. For a map it is the last
    /// one, because keys seldom own much.
    pub(crate) fn own_type<'n>(&self, name: &'n str) -> Option<&'n str> {
        let is_own = |path: &&str| {
            path.split_once("::").is_some_and(|(krate, _)| self.own_crates.contains(krate))
        };
        let is_map =
            ["BTreeMap<", "HashMap table", "IndexMap<"].iter().any(|map| name.starts_with(map));
        if name.starts_with("one of ") {
            return None;
        }
        if is_map { paths(name).rfind(is_own) } else { paths(name).find(is_own) }
    }
}

/// Finds for each unreported block of a scan the first word of a reported block that points at it.
fn pointing_words(dump: &Dump) -> Vec<Link> {
    let is_any =
        |reported| dump.blocks.added_up().any(|block| dump.reports(&block).is_some() == reported);
    if mode(dump) != Mode::DarkMatter || !is_any(true) || !is_any(false) {
        return Vec::new();
    }
    let Ok(ranges) = BlockRanges::new(dump) else { return Vec::new() };
    let is_reported = |block: u32| dump.reports(&dump.blocks.at(block as usize)).is_some();
    let mut known = vec![false; dump.blocks.len()];
    let mut links: Vec<Link> = Vec::new();
    ranges.each_link(|link| {
        let known = &mut known[link.to as usize];
        if !*known && !is_reported(link.to) && is_reported(link.from) {
            *known = true;
            links.push(link);
        }
    });
    if ranges.check_words().is_err() {
        return Vec::new();
    }
    links.sort_unstable();
    links
}

/// Returns the name of a static in the source, without what `lazy_static` and the compiler add to
/// it.
pub(crate) fn readable_static(name: &str) -> &str {
    let lazy =
        name.strip_prefix('<').and_then(|name| name.split_once(" as core::ops::deref::Deref"));
    let name = lazy.map_or(name, |(of, _)| of);
    match name.rsplit_once('.') {
        Some((whole, part)) if part.bytes().all(|byte| byte.is_ascii_digit()) => whole,
        _ => name,
    }
}

fn without_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

/// Returns the paths in the name of a type.
fn paths(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    let words = name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    // A path with a brace is the compiler's.
    words.filter(|word| word.contains("::") && !word.ends_with(':'))
}

#[cfg(test)]
mod tests {
    use super::{paths, readable_static, without_arguments};

    #[test]
    fn a_name_without_arguments_ends_before_them() {
        let table =
            [("shop::Cart<u8, Vec<u8>>", "shop::Cart"), ("shop::Cart", "shop::Cart"), ("", "")];
        for (name, expected) in table {
            assert_eq!(without_arguments(name), expected);
        }
    }

    #[test]
    fn paths_have_several_segments_and_no_braces() {
        let table: [(&str, &[&str]); 4] = [
            ("[u8]", &[]),
            (
                "HashMap table of (alloc::string::String, shop::Cart<u8>)",
                &["alloc::string::String", "shop::Cart"],
            ),
            ("Box<shop::serve::{closure#0}>", &[]),
            ("Arc<[shop_2::Item; 4]>", &["shop_2::Item"]),
        ];
        for (name, expected) in table {
            assert_eq!(paths(name).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn statics_have_their_names_in_the_source() {
        let table = [
            ("shop::STOCK", "shop::STOCK"),
            ("shop::STOCK.0", "shop::STOCK"),
            ("shop::STOCK.llvm", "shop::STOCK.llvm"),
            ("<shop::CART as core::ops::deref::Deref>::deref::__stability::LAZY", "shop::CART"),
        ];
        for (name, expected) in table {
            assert_eq!(readable_static(name), expected);
        }
    }
}
