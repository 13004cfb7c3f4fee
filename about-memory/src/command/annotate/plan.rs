//! The changes that are planned: which types derive, which statics are reported, and so on.

use super::error::AnnotateError;
use super::source::index::SourceIndex;
use super::source::workspace::Sources;
use memreport_analysis::analysis::{Class, ExplainOptions, FEATURES, commas, explain};
use memreport_analysis::ownership::{
    MeasureRules, MeasuredRoot, RootChoice, measure, needed_types,
};
use memreport_analysis::read::{Dump, Holder, ReportSite};
use memreport_analysis::symbols::Types;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// The facts about a program: its heap, its types, and its source.
pub(crate) struct Facts<'a> {
    pub(crate) dump: &'a Dump,
    pub(crate) types: &'a Types,
    pub(crate) sources: &'a Sources,
    pub(crate) index: &'a SourceIndex,
    /// The name of the program's file.
    pub(crate) program: &'a str,
}

/// The changes, by what they are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The types that derive `MallocSizeOf`.
    pub(crate) derives: BTreeSet<String>,
    /// The statics and variables that get a reporter.
    pub(crate) roots: BTreeSet<String>,
    /// The crates whose feature of memreport is enabled, by the types and statics that need it.
    pub(crate) features: BTreeSet<(String, String)>,
    /// The fields that are skipped, with the reasons.
    pub(crate) ignored: BTreeMap<String, String>,
    /// The fields that are skipped now, and measured then.
    pub(crate) measured: BTreeSet<String>,
    /// The fields whose shared blocks another field counts, with the bytes counted twice.
    pub(crate) shared: BTreeMap<String, i128>,
    /// The subjects of changes that do not compile, with the reasons.
    pub(crate) dropped: BTreeMap<String, String>,
}

impl Facts<'_> {
    /// Returns the rules by which the source measures after the changes of a plan.
    pub(crate) fn rules(&self, plan: &Plan) -> MeasureRules {
        let mut rules = MeasureRules::default();
        let measured = self.index.types.iter().filter(|(_, of)| of.is_measured);
        rules.types = measured.map(|(path, _)| path.clone()).collect();
        rules.types.extend(plan.derives.iter().cloned());
        rules.crates = self.measured_crates();
        rules.crates.extend(plan.features.iter().map(|(_, feature)| crate_of(feature)));
        rules.ignored = self.ignored(plan);
        rules
    }

    /// Returns the rules of a source in which every type of the program derives, except for what a
    /// plan drops.
    pub(crate) fn wide_rules(&self, plan: &Plan) -> MeasureRules {
        let mut rules = MeasureRules::default();
        let types = self.index.types.keys().filter(|path| !plan.dropped.contains_key(*path));
        rules.types = types.cloned().collect();
        rules.crates = self.measured_crates();
        let dropped = |feature: &str| plan.dropped.contains_key(feature);
        let features = FEATURES.iter().filter(|feature| !dropped(feature));
        rules.crates.extend(features.map(|feature| crate_of(feature)));
        rules.ignored = self.ignored(plan);
        rules
    }

    fn ignored(&self, plan: &Plan) -> HashSet<String> {
        let fields = self.index.types.values().flat_map(|of| &of.fields);
        let now = fields.filter(|field| field.ignored.is_some()).map(|field| &field.name);
        let now = now.filter(|name| !plan.measured.contains(*name));
        now.chain(plan.ignored.keys()).cloned().collect()
    }

    /// Returns the crates whose types the program's build of memreport measures.
    fn measured_crates(&self) -> HashSet<String> {
        let features = self.dump.extension.iter().flat_map(|ours| &ours.features);
        features.map(|feature| crate_of(feature)).collect()
    }

    /// Plans reporters of statics and fields to measure, each for at least so many bytes.
    pub(crate) fn plan(&self, least: u64) -> Result<Plan, AnnotateError> {
        let mut plan = Plan::default();
        for root in self.roots(&self.wide_rules(&plan))? {
            if root.unreported.bytes < least.max(1) {
                continue;
            }
            // What is reported already would be reported twice.
            if root.again.bytes > root.unreported.bytes {
                let why = "another reporter reports most of it".to_owned();
                plan.dropped.insert(root.name, why);
                continue;
            }
            plan.roots.insert(root.name);
        }
        plan.measured.extend(self.skipped().into_iter().filter_map(|(field, bytes)| {
            let has_field = self.index.types.values().flat_map(|of| &of.fields);
            let is_there =
                has_field.into_iter().any(|own| own.name == field && own.ignored.is_some());
            (is_there && bytes >= least.max(1)).then_some(field)
        }));
        for (field, bytes) in self.counted_twice() {
            if bytes >= i128::from(least.max(1)) && owner_of(self.index, &field).is_some() {
                plan.shared.insert(field, bytes);
            }
        }
        self.complete(&mut plan)?;
        Ok(plan)
    }

    /// Fails if a plan changes nothing, with the reason.
    pub(crate) fn require_changes(&self, plan: &Plan) -> Result<(), AnnotateError> {
        if !plan.roots.is_empty() || !plan.measured.is_empty() || !plan.shared.is_empty() {
            return Ok(());
        }
        let explained = explain(self.dump, &ExplainOptions::default());
        let unreported = explained.totals(Class::Unreported).usable();
        let unreported = unreported + i128::from(explained.untracked.bytes);
        if unreported == 0 {
            return Err(AnnotateError::NothingUnreported);
        }
        let (bytes, mut dropped) = (commas(unreported), plan.dropped.iter());
        let reason = match dropped.next() {
            Some((subject, why)) => format!("{subject} holds unreported bytes, but {why}"),
            None => format!(
                "no static or skipped field of the program's own holds enough of the {bytes} unreported bytes; \
                 `about-memory tree --unreported` shows what does, and memreport::report_value reports a value"
            ),
        };
        Err(AnnotateError::NothingToChange(reason))
    }

    /// Returns what reporters of the program's own statics and variables would measure.
    pub(crate) fn roots(&self, rules: &MeasureRules) -> Result<Vec<MeasuredRoot>, AnnotateError> {
        let ours = self.dump.extension.iter().flat_map(|ours| &ours.reported_statics);
        let reported: HashSet<&str> = ours.filter_map(|place| place.name.as_deref()).collect();
        let is_root =
            |name: &str| self.index.file_of_root(name).is_some() && !reported.contains(name);
        self.roots_of(rules, &is_root)
    }

    /// Returns what reporters of these statics and variables would measure.
    pub(crate) fn roots_of(
        &self,
        rules: &MeasureRules,
        is_root: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<MeasuredRoot>, AnnotateError> {
        let variables = |file: &str, line: u32| {
            let name = self.index.variable_at(file, line)?;
            is_root(name).then(|| name.to_owned())
        };
        let choice = RootChoice { statics: is_root, variables: &variables };
        measure(self.dump, self.types, rules, &choice)
            .map_err(|error| AnnotateError::NothingToChange(error.to_string()))
    }

    /// Adds what the statics and fields of a plan need: derives and features.
    pub(crate) fn complete(&self, plan: &mut Plan) -> Result<(), AnnotateError> {
        let rules = self.wide_rules(plan);
        let roots = self.roots(&rules)?;
        let statics = roots.iter().filter(|root| plan.roots.contains(&root.name));
        let owners = plan.measured.iter().filter_map(|field| owner_of(self.index, field));
        let owners: Vec<&str> = owners.collect();
        let names: Vec<(&str, &str)> = statics
            .map(|root| (&*root.name, &*root.type_name))
            .chain(owners.iter().map(|owner| (*owner, *owner)))
            .collect();
        let enabled = self.measured_crates();
        for (subject, name) in names {
            let needed = needed_types(self.types, &rules, &[name]);
            let is_new = |path: &&String| !self.index.types[*path].is_measured;
            let own = needed.own.iter().filter(|path| self.index.types.contains_key(*path));
            plan.derives.extend(own.filter(is_new).cloned());
            for (field, krate) in needed.crates.iter().filter(|(_, krate)| !enabled.contains(krate))
            {
                let place = if field.is_empty() { subject } else { field };
                let feature = FEATURES.iter().find(|feature| crate_of(feature) == *krate);
                plan.features
                    .extend(feature.map(|feature| (place.to_owned(), (*feature).to_owned())));
            }
        }
        plan.derives.retain(|path| !plan.dropped.contains_key(path));
        Ok(())
    }

    /// Returns the fields that count shared blocks which another field counts by its attribute,
    /// with the bytes of these.
    fn counted_twice(&self) -> HashMap<String, i128> {
        let mut bytes: HashMap<String, i128> = HashMap::new();
        let Some(ours) = &self.dump.extension else { return bytes };
        for block in &self.dump.blocks {
            let [one, other] = self.dump.reports(&block).unwrap_or_default() else { continue };
            let Some((one, other)) = ours.reports.get(one).zip(ours.reports.get(other)) else {
                continue;
            };
            let is_here = |site: &ReportSite| site.shared.as_deref() == Some("here");
            let guest = match (is_here(one), is_here(other)) {
                (false, false) => continue,
                (false, true) => one,
                (true, _) => other,
            };
            let Some((of, field)) = guest.type_name.as_ref().zip(guest.field.as_ref()) else {
                continue;
            };
            let of = of.split('<').next().unwrap_or_default();
            let sum = bytes.entry(format!("{of}.{field}")).or_default();
            *sum += i128::from(block.usable().saturating_mul(block.num));
        }
        bytes
    }

    /// Returns the skipped fields that hold unreported blocks, with the bytes of these.
    pub(crate) fn skipped(&self) -> HashMap<String, u64> {
        let mut bytes: HashMap<String, u64> = HashMap::new();
        let Some(ours) = &self.dump.extension else { return bytes };
        for block in &self.dump.blocks {
            let holder = block.kind.held_by.and_then(|id| ours.holders.get(&id));
            if let Some(Holder::Skipped(field)) = holder {
                let owner = field.type_name.split('<').next().unwrap_or_default();
                let sum = bytes.entry(format!("{owner}.{}", field.field)).or_default();
                *sum += block.usable().saturating_mul(block.num);
            }
        }
        bytes
    }
}

/// Returns the name of a crate in paths by the feature of its name.
pub(crate) fn crate_of(feature: &str) -> String {
    feature.replace('-', "_")
}

/// Returns the type that a field is of. The field of a variant is of its enum.
pub(crate) fn owner_of<'i>(index: &'i SourceIndex, field: &str) -> Option<&'i str> {
    let (of, _) = field.rsplit_once('.')?;
    let own = index.types.get_key_value(of);
    let own = own.or_else(|| index.types.get_key_value(of.rsplit_once("::")?.0));
    own.map(|(path, _)| &**path)
}

/// Returns the name of a program's file.
pub(crate) fn file_name(program: &str) -> String {
    let name = Path::new(program).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
