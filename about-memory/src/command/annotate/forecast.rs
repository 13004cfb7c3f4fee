//! Predicts the heap that reporters cover after a patch.

use super::edits::{Change, Changes};
use super::error::AnnotateError;
use super::plan::{Facts, Plan};
use memreport_analysis::analysis::{Class, ExplainOptions, coverage, explain};
use memreport_analysis::ownership::{MeasuredRoot, ShareOf};
use std::collections::HashMap;

/// The bytes of a heap that are classified, before and after a patch.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    /// The bytes of the heap.
    pub(crate) heap: i128,
    /// The bytes that are reported exactly once now.
    pub(crate) before: i128,
    /// The bytes that will be.
    pub(crate) after: i128,
    /// By change: the bytes that need it.
    pub(crate) bytes: Vec<i128>,
    /// The blocks that stay unreported, the most bytes first.
    pub(crate) left: Vec<Left>,
}

/// Blocks that stay unreported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) what: String,
    pub(crate) bytes: i128,
    pub(crate) why: String,
}

/// The name of the rest.
const REST: &str = "the rest";

/// The reason why the rest stays unreported.
const REST_WHY: &str = "held from a stack, a thread-local or a library, or leaked; `about-memory tree --unreported` shows it, \
     and memreport::report_value reports a value that a static cannot hold";

impl Facts<'_> {
    /// Predicts the effect of a plan and of its changes.
    pub(crate) fn forecast(
        &self,
        plan: &Plan,
        changes: &Changes,
    ) -> Result<Forecast, AnnotateError> {
        let options = ExplainOptions::default();
        let explained = explain(self.dump, &options);
        let heap = explained.heap.usable();
        let before = coverage(self.dump, &options).map_or(0, |coverage| coverage.exactly_once());
        let roots = self.measured(plan, false)?;
        let everything =
            self.measured(&Plan { ignored: Default::default(), ..plan.clone() }, true)?;
        let skipped = self.skipped();
        let of_field = |name: &String| skipped.get(name).copied().map_or(0, i128::from);
        let statics: i128 = roots.iter().map(|root| i128::from(root.unreported.bytes)).sum();
        let twice: i128 = roots.iter().map(|root| i128::from(root.again.bytes)).sum();
        let gained = statics + plan.measured.iter().map(of_field).sum::<i128>();
        let types = sums(roots.iter().flat_map(|root| &root.types));
        let fields = sums(roots.iter().flat_map(|root| &root.fields));
        let lost = sums(everything.iter().flat_map(|root| &root.fields));
        let root = |name: &str| {
            let found = roots.iter().find(|root| root.name == name);
            found.map_or(0, |root| i128::from(root.unreported.bytes))
        };
        let bytes = |change: &Change| match change {
            Change::Derive(path) => types.get(&**path).copied().unwrap_or(0),
            Change::Report(name) => root(name),
            Change::Measure(field) => of_field(field),
            Change::Share(field) => plan.shared.get(field).copied().unwrap_or(0),
            Change::Ignore(_) | Change::Depend(_) => 0,
            Change::Feature(feature) => {
                let subjects = plan.features.iter().filter(|(_, known)| known == feature);
                let of =
                    |subject: &str| fields.get(subject).copied().unwrap_or_else(|| root(subject));
                subjects.map(|(subject, _)| of(subject)).sum()
            }
        };
        let mut left: Vec<Left> = Vec::new();
        for (field, why) in &plan.ignored {
            let bytes = lost.get(&**field).copied().unwrap_or(0);
            left.push(Left { what: field.clone(), bytes, why: why.clone() });
        }
        let wide = self.roots(&self.wide_rules(&Plan::default()))?;
        for (subject, why) in &plan.dropped {
            let found = wide.iter().find(|root| root.name == *subject);
            let bytes =
                found.map_or_else(|| of_field(subject), |root| root.unreported.bytes.into());
            left.push(Left { what: subject.clone(), bytes, why: why.clone() });
        }
        let unreported = explained.totals(Class::Unreported).usable();
        let unreported = unreported + i128::from(explained.untracked.bytes);
        let known: i128 = left.iter().map(|left| left.bytes).sum();
        let rest = (unreported - gained - known).max(0);
        left.push(Left { what: REST.to_owned(), bytes: rest, why: REST_WHY.to_owned() });
        left.sort_by(|a, b| (b.bytes, &a.what).cmp(&(a.bytes, &b.what)));
        Ok(Forecast {
            heap,
            before,
            after: before + gained - twice + plan.shared.values().sum::<i128>(),
            bytes: changes.all.iter().map(bytes).collect(),
            left,
        })
    }

    /// Returns what the statics of a plan measure, or would if all fields were measured.
    fn measured(&self, plan: &Plan, all: bool) -> Result<Vec<MeasuredRoot>, AnnotateError> {
        let mut rules = if all { self.wide_rules(plan) } else { self.rules(plan) };
        rules.all_crates = all;
        let mut roots = self.roots_of(&rules, &|name| plan.roots.contains(name))?;
        roots.retain(|root| plan.roots.contains(&root.name));
        Ok(roots)
    }
}

fn sums<'s>(shares: impl Iterator<Item = &'s ShareOf>) -> HashMap<&'s str, i128> {
    let mut sums: HashMap<&str, i128> = HashMap::new();
    for share in shares {
        *sums.entry(&share.name).or_default() += i128::from(share.blocks.bytes);
    }
    sums
}
