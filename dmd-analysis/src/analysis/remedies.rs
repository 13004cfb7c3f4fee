//! What to do about a record, in one line: the code to change, where the dump tells it. What is not certain says "perhaps".

use std::collections::HashSet;

use super::Totals;
use super::links::Links;
use super::number::commas;
use super::people::{Parts, Style};
use super::sites::Site;
use super::types::BlockType;
use crate::read::{Dump, Extension, Holder, HolderId, ReportSite, TraceId, Wrong, WrongKind};
use crate::symbols::Members;

/// Crates whose types memreport measures if the feature of this name is on.
const FEATURES: [&str; 39] = [
    "ahash",
    "arc-swap",
    "arrayvec",
    "arrow-buffer",
    "bitvec",
    "bumpalo",
    "bytes",
    "chrono",
    "compact_str",
    "crossbeam-queue",
    "crossbeam-utils",
    "dashmap",
    "either",
    "half",
    "http",
    "indexmap",
    "lock_api",
    "lru",
    "moka",
    "ndarray",
    "num-bigint",
    "once_cell",
    "ordermap",
    "parking_lot",
    "petgraph",
    "rustc-hash",
    "secrecy",
    "serde_json",
    "slab",
    "slotmap",
    "smallvec",
    "smol_str",
    "thin-vec",
    "time",
    "tinyvec",
    "tokio",
    "triomphe",
    "url",
    "uuid",
];

/// Finds remedies in one dump.
pub(crate) struct Remedies<'d> {
    extension: Option<&'d Extension>,
    style: &'d Style<'d>,
    /// Types with a field that was measured, or that is skipped.
    measured: HashSet<&'d str>,
    /// Statics that point into blocks that are reported.
    reported_statics: HashSet<&'d str>,
    /// The crates of the program's own code.
    own_crates: HashSet<&'d str>,
    /// Who points at whom, in a scan.
    links: Option<Links>,
    members: &'d Members,
}

/// Blocks that nobody reports, by what each has to do with.
#[derive(Debug, Default)]
pub(crate) struct Dark<'d> {
    /// By what holds them, and whether only through other blocks.
    pub(crate) held: Vec<((bool, HolderId), Totals)>,
    /// By a reported block that points at them.
    pub(crate) pointed: Vec<(Pointing<'d>, Totals)>,
}

/// A reported block that points at one that is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointing<'d> {
    /// Where that block was allocated.
    pub(crate) alloc: Option<TraceId>,
    /// Who reports it.
    report: Option<&'d ReportSite>,
    /// Where the word is in it, in bytes.
    at: u32,
}

impl<'d> Remedies<'d> {
    pub(crate) fn new(dump: &'d Dump, style: &'d Style<'d>, members: &'d Members) -> Self {
        let extension = dump.extension.as_ref();
        let fields =
            extension.iter().flat_map(|ours| ours.measured.iter().chain(ours.skipped.iter()));
        let statics = extension.iter().flat_map(|ours| &ours.reported_statics);
        let own = dump.frames.iter().map(Parts::of).filter(Parts::is_own);
        Self {
            extension,
            style,
            measured: fields.map(|field| without_arguments(&field.type_name)).collect(),
            reported_statics: statics.filter_map(|place| place.name.as_deref()).collect(),
            own_crates: own.filter_map(|parts| parts.crate_name()).collect(),
            members,
            links: extension.and_then(|_| Links::new(dump).ok()),
        }
    }

    /// The first reported block that points at this one, in a scan.
    pub(crate) fn pointing(&self, dump: &'d Dump, block: usize) -> Option<Pointing<'d>> {
        let links = self.links.as_ref()?.to(u32::try_from(block).ok()?);
        links.iter().find_map(|link| {
            let from = &dump.blocks[link.from as usize];
            let report = self.extension?.reports.get(dump.reports(from)?.first()?);
            Some(Pointing { alloc: from.alloc, report, at: link.at })
        })
    }

    /// For blocks that nobody reports, some of which are held by something that is known.
    pub(crate) fn dark(
        &self,
        site: &Site,
        totals: Totals,
        dark: &Dark<'_>,
        type_of: impl Fn(Option<TraceId>) -> BlockType,
    ) -> Option<String> {
        // What holds a block directly is a fact, and comes before any guess.
        let biggest = dark
            .held
            .iter()
            .max_by_key(|((through, id), held)| (!through, held.usable(), std::cmp::Reverse(*id)));
        let by_holder = biggest.and_then(|((through, id), held)| {
            // A few blocks of many are as likely to be held by accident.
            if *through && held.blocks * 2 < totals.blocks {
                return None;
            }
            let line = self.held_by(self.extension?.holders.get(id)?)?;
            let line = if *through { format!("perhaps {line}") } else { line };
            Some(if held.blocks < totals.blocks {
                format!("{line} ({} of the {} blocks)", commas(held.blocks), commas(totals.blocks))
            } else {
                line
            })
        });
        let by_pointer = || {
            let (pointing, _) = dark.pointed.iter().max_by_key(|(_, totals)| totals.usable())?;
            self.pointed_by(*pointing, &type_of(pointing.alloc))
        };
        by_holder.or_else(by_pointer).or_else(|| self.by_type(site)).or_else(|| self.by_crate(site))
    }

    /// A reported block points there: whoever measured it knew of the pointer, and did not follow it.
    fn pointed_by(&self, pointing: Pointing<'_>, block_type: &BlockType) -> Option<String> {
        let own = match block_type {
            BlockType::Known(name) => self.own_type(name).map(|own| (own, name)),
            _ => None,
        };
        let Some((own, name)) = own else {
            let owner = field(pointing.report?)?;
            return Some(format!("perhaps measured by hand: what {owner} holds points at it"));
        };
        // Before the value in a shared block are its two counts.
        let at = match () {
            () if name.starts_with("Box<") => Some(pointing.at),
            () if name.starts_with("Arc<") || name.starts_with("Rc<") => {
                pointing.at.checked_sub(16)
            }
            () => None,
        };
        let field = at.and_then(|at| self.member(own, at));
        let place = at.map_or_else(String::new, |at| format!(" at byte {at}"));
        Some(if let Some(field) = field.filter(|_| !self.measured.contains(own)) {
            format!("measured by hand: {own}'s impl does not visit .{field}")
        } else if self.measured.contains(own) {
            format!("perhaps measured by hand: what {own} holds{place} is not visited")
        } else {
            format!("measured by hand: {own}'s impl does not visit what it holds{place}")
        })
    }

    /// The field that has this byte of the type.
    fn member(&self, of: &str, at: u32) -> Option<&str> {
        let before = self.members.get(of)?.iter().filter(|(start, _)| *start <= at.into());
        before.max_by_key(|(start, _)| *start).map(|(_, name)| &**name)
    }

    /// The first type of the program's own in the name of another; of a map the last, as keys seldom own much.
    pub(crate) fn own_type<'n>(&self, name: &'n str) -> Option<&'n str> {
        let is_own = |path: &&str| {
            path.split_once("::").is_some_and(|(krate, _)| self.own_crates.contains(krate))
        };
        let is_map = name.starts_with("BTreeMap<") || name.starts_with("HashMap table");
        if is_map { paths(name).rfind(is_own) } else { paths(name).find(is_own) }
    }

    fn held_by(&self, holder: &Holder) -> Option<String> {
        match holder {
            Holder::Skipped(field) => {
                let (owner, name) = (&field.type_name, &field.field);
                let (file, line) = (self.style.file(&field.file), field.line);
                let reason = field.reason.as_deref().unwrap_or_default();
                Some(format!("field {owner}.{name} is skipped at {file}:{line} (\"{reason}\")"))
            }
            Holder::Static(place) => {
                let name = place.name.as_deref().filter(|name| is_of_program(name))?;
                let shown = readable(name);
                let krate = shown.split("::").next().unwrap_or_default();
                Some(if !self.own_crates.contains(krate) {
                    format!("held by static {shown} of a library: none of the program's own")
                } else if self.reported_statics.contains(name) {
                    format!(
                        "measured by hand: the reporter of static {shown} does not visit all it holds"
                    )
                } else {
                    format!("no reporter reaches static {shown}: register one")
                })
            }
        }
    }

    /// By the first type of the program's own that the block holds.
    fn by_type(&self, site: &Site) -> Option<String> {
        // Without our extension nothing is known of what is measured.
        self.extension?;
        let BlockType::Known(name) = &site.block_type else { return None };
        let own = self.own_type(name)?;
        Some(if self.measured.contains(own) {
            format!("perhaps register a reporter for what owns them: {own} can be measured")
        } else {
            format!("perhaps derive MallocSizeOf for {own}: no field of it was measured")
        })
    }

    /// By the crate whose code asked for the blocks.
    fn by_crate(&self, site: &Site) -> Option<String> {
        // Other languages' programs have no features of ours.
        let on = &self.extension?.features;
        let krate = site.krate.as_deref()?;
        // Hyphens are underscores in paths.
        let same = |feature: &&&str| feature.replace('-', "_") == krate.replace('-', "_");
        let feature =
            FEATURES.iter().find(same).filter(|feature| !on.iter().any(|on| on == *feature))?;
        Some(format!("perhaps enable feature \"{feature}\" of memreport"))
    }

    /// For blocks that are reported more than once.
    pub(crate) fn double(&self, reports: &[TraceId], block_type: &BlockType) -> Option<String> {
        let sites = &self.extension?.reports;
        let first = sites.get(reports.first()?)?;
        let Some(other) = reports.iter().find(|&report| report != &reports[0]) else {
            return Some(format!("{} comes to it twice: once is enough", subject(first)));
        };
        let again = sites.get(other)?;
        let here = |site: &ReportSite| site.shared.as_deref() == Some("here");
        let is_shared = matches!(block_type, BlockType::Known(name)
            if name.starts_with("Arc<") || name.starts_with("Rc<"));
        Some(match (field(first), field(again)) {
            (Some(one), Some(other)) if is_shared || here(first) || here(again) => {
                let (owner, guest) =
                    if here(again) && !here(first) { (other, one) } else { (one, other) };
                format!("#[malloc_size_of(shared = elsewhere)] on {guest}: {owner} counts it")
            }
            (Some(one), Some(other)) if one == other => {
                format!("{} and {} both come to {one}: leave it out of one", first.path, again.path)
            }
            (Some(one), Some(other)) => format!(
                "{one} and {other} both count it: #[malloc_size_of(ignore = \"…\")] on the one that does not own it"
            ),
            (Some(owner), None) => by_hand(again, &owner),
            (None, Some(owner)) => by_hand(first, &owner),
            (None, None) => {
                format!(
                    "{} and {} both count it by hand: leave it out of one",
                    first.path, again.path
                )
            }
        })
    }

    /// For reports that do not fit the heap, of which this is the first.
    pub(crate) fn wrong(&self, report: &Wrong) -> Option<String> {
        let ours = self.extension?;
        let site = ours.reports.get(&report.reporter?)?;
        let who = subject(site);
        match report.kind {
            WrongKind::NonHeap => {
                let what = match &report.module {
                    Some(path) if ours.program.as_ref() == Some(path) => {
                        "bytes of the program's file for a heap block".to_owned()
                    }
                    Some(path) => format!("bytes of {path} for a heap block"),
                    None => "bytes that are in no heap block for one".to_owned(),
                };
                Some(format!(
                    "{who} takes {what}: leave them out, or report them with Report::non_heap"
                ))
            }
            WrongKind::Interior => {
                let around = report.block_reports.first().and_then(|id| ours.reports.get(id));
                Some(match around {
                    Some(site) => format!(
                        "{who} claims a part of the block that {} reports: leave it out",
                        subject(site)
                    ),
                    None => format!(
                        "{who} claims a part of a block: claim it by its start, or by Ops::enclosing_block"
                    ),
                })
            }
            WrongKind::Partial => {
                let (claimed, req) = (commas(report.claimed.into()), commas(report.req?.into()));
                Some(format!(
                    "{who} claims {claimed} bytes of a block made with {req}: give Ops::block the layout that it was made with"
                ))
            }
            WrongKind::FreedSince | WrongKind::Other => None,
        }
    }
}

fn by_hand(site: &ReportSite, owner: &str) -> String {
    format!("{} counts by hand what {owner} owns: leave it out there", site.path)
}

/// The field that made a report, or else its path.
fn subject(site: &ReportSite) -> String {
    field(site).unwrap_or_else(|| site.path.clone())
}

fn field(site: &ReportSite) -> Option<String> {
    Some(format!("{}.{}", site.type_name.as_ref()?, site.field.as_ref()?))
}

/// A static by the name in its source: `lazy_static` makes another one of it, and the compiler takes some apart.
pub(crate) fn readable(name: &str) -> &str {
    let lazy =
        name.strip_prefix('<').and_then(|name| name.split_once(" as core::ops::deref::Deref"));
    let name = lazy.map_or(name, |(of, _)| of);
    match name.rsplit_once('.') {
        Some((whole, part)) if part.bytes().all(|byte| byte.is_ascii_digit()) => whole,
        _ => name,
    }
}

/// Whether a static is somebody's whose code can be changed: not the standard library's, nor C's.
fn is_of_program(name: &str) -> bool {
    let path = name.trim_start_matches(['<', '&']);
    let krate = path.split("::").next().unwrap_or_default();
    path.contains("::") && !matches!(krate, "std" | "core" | "alloc" | "dmd" | "memreport")
}

fn without_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

/// The paths in the name of a type.
fn paths(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    let words = name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    // What the compiler made has a brace in its path.
    words.filter(|word| word.contains("::") && !word.ends_with(':'))
}
