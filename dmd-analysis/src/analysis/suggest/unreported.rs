//! Suggestions for unreported blocks: by the holder, by a reported block that points there, by
//! type, and by crate.

use super::features::FEATURES;
use super::program::{Pointing, ProgramFacts, readable_static};
use super::wrong::field;
use crate::analysis::frames::{BlockType, Site};
use crate::analysis::number::commas;
use crate::analysis::records::Totals;
use crate::read::{Block, Holder, HolderId, TraceId};

/// The unreported blocks of one place, by what could report them.
#[derive(Debug, Default)]
pub(crate) struct UnreportedCauses<'d> {
    /// By holder.
    pub(crate) held: Vec<(BlockHolder, Totals)>,
    /// By the reported block that points at them.
    pub(crate) pointed: Vec<(Pointing<'d>, Totals)>,
}

/// The holder of an unreported block, and how it holds the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHolder {
    pub(crate) id: HolderId,
    /// True if it holds the block through other unreported blocks.
    pub(crate) is_indirect: bool,
}

impl BlockHolder {
    /// Returns the holder of a block, if the dump names one.
    pub(crate) fn of(block: &Block<'_>) -> Option<Self> {
        block.kind.held_by.map(|id| Self { id, is_indirect: block.kind.is_held_through })
    }
}

impl ProgramFacts<'_> {
    /// Returns the suggestion for unreported blocks of one place, if there is one.
    pub(crate) fn for_unreported(
        &self,
        site: &Site,
        totals: Totals,
        causes: &UnreportedCauses<'_>,
        type_of: impl Fn(Option<TraceId>) -> BlockType,
    ) -> Option<String> {
        // A direct holder is a fact, and is preferred to any guess.
        let biggest = causes.held.iter().max_by_key(|(holder, held)| {
            (!holder.is_indirect, held.usable(), std::cmp::Reverse(holder.id))
        });
        let by_holder = biggest.and_then(|(holder, held)| {
            // An indirect holder of less than half of the blocks may be accidental.
            if holder.is_indirect && held.blocks * 2 < totals.blocks {
                return None;
            }
            let line = self.held_by(self.extension?.holders.get(&holder.id)?)?;
            let line = if holder.is_indirect { format!("perhaps {line}") } else { line };
            Some(if held.blocks < totals.blocks {
                format!("{line} ({} of the {} blocks)", commas(held.blocks), commas(totals.blocks))
            } else {
                line
            })
        });
        let by_pointer = || {
            let (pointing, _) = causes.pointed.iter().max_by_key(|(_, totals)| totals.usable())?;
            self.pointed_by(*pointing, &type_of(pointing.alloc))
        };
        by_holder.or_else(by_pointer).or_else(|| self.by_type(site)).or_else(|| self.by_crate(site))
    }

    /// Suggests to follow a pointer of a reported block, which its impl visits but does not follow.
    fn pointed_by(&self, pointing: Pointing<'_>, block_type: &BlockType) -> Option<String> {
        let own = match block_type {
            BlockType::Known(name) => self.own_type(name).map(|own| (own, name)),
            _ => None,
        };
        let Some((own, name)) = own else {
            let owner = field(pointing.report?)?;
            return Some(format!("perhaps measured by hand: what {owner} holds points at it"));
        };
        // The two counts of a shared block precede its value.
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

    /// Suggests to report what a holder holds.
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
                let shown = readable_static(name);
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

    /// Suggests to measure the first type of the program's own in the block's type.
    fn by_type(&self, site: &Site) -> Option<String> {
        // Without our extension the dump does not list measured types.
        self.extension?;
        let BlockType::Known(name) = &site.block_type else { return None };
        let own = self.own_type(name)?;
        Some(if self.measured.contains(own) {
            format!("perhaps register a reporter for what owns them: {own} can be measured")
        } else {
            format!("perhaps derive MallocSizeOf for {own}: no field of it was measured")
        })
    }

    /// Suggests the feature of memreport for the crate that allocated the blocks.
    fn by_crate(&self, site: &Site) -> Option<String> {
        // Without our extension the dump does not list features.
        let on = &self.extension?.features;
        let krate = site.krate.as_deref()?;
        // A path has underscores for hyphens.
        let same = |feature: &&&str| feature.replace('-', "_") == krate.replace('-', "_");
        let feature =
            FEATURES.iter().find(same).filter(|feature| !on.iter().any(|on| on == *feature))?;
        Some(format!("perhaps enable feature \"{feature}\" of memreport"))
    }
}

/// Returns whether a static is in code that can be changed: not in the standard library, and not in
/// C.
fn is_of_program(name: &str) -> bool {
    let path = name.trim_start_matches(['<', '&']);
    let krate = path.split("::").next().unwrap_or_default();
    path.contains("::") && !matches!(krate, "std" | "core" | "alloc" | "dmd" | "memreport")
}
