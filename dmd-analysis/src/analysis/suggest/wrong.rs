//! Suggestions for blocks that are reported twice, and for reports that do not fit the heap.

use super::program::ProgramFacts;
use crate::analysis::frames::BlockType;
use crate::analysis::number::commas;
use crate::read::{ReportSite, TraceId, Wrong, WrongKind};

impl ProgramFacts<'_> {
    /// Returns the suggestion for blocks that are reported more than once.
    pub(crate) fn for_double(&self, reports: &[TraceId], block_type: &BlockType) -> Option<String> {
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

    /// Returns the suggestion for reports that do not fit the heap, by the first of them.
    pub(crate) fn for_wrong(&self, report: &Wrong) -> Option<String> {
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

/// Suggests to drop a manual count of what a field owns.
fn by_hand(site: &ReportSite, owner: &str) -> String {
    format!("{} counts by hand what {owner} owns: leave it out there", site.path)
}

/// Returns the field that made a report, or else the path of the report.
fn subject(site: &ReportSite) -> String {
    field(site).unwrap_or_else(|| site.path.clone())
}

/// Returns the field that made a report, as `Type.field`.
pub(super) fn field(site: &ReportSite) -> Option<String> {
    Some(format!("{}.{}", site.type_name.as_ref()?, site.field.as_ref()?))
}
