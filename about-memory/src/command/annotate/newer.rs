//! Finds files that are newer than the program.

use super::edits::Changes;
use super::error::AnnotateError;
use super::plan::{Facts, Plan};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

impl Facts<'_> {
    /// Returns the files of a patch that changed after the program was built, by their times or by
    /// the lines of statics.
    pub(crate) fn newer(
        &self,
        plan: &Plan,
        changes: &Changes,
        dump: &Path,
    ) -> Result<Vec<PathBuf>, AnnotateError> {
        let program = self.dump.extension.as_ref().and_then(|ours| ours.program.as_deref());
        let built = program.and_then(|program| time(Path::new(program))).or_else(|| time(dump));
        let is_newer = |path: &Path| built.zip(time(path)).is_some_and(|(built, own)| own > built);
        let files = changes.files.iter().map(|file| &file.path);
        let is_source =
            |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "rs");
        let mut newer: Vec<PathBuf> =
            files.filter(is_source).filter(|path| is_newer(path)).cloned().collect();
        for root in self.roots_of(&self.rules(plan), &|name| plan.roots.contains(name))? {
            let Some((line, of)) = root.line.zip(self.index.statics.get(&root.name)) else {
                continue;
            };
            let file = &self.index.files[of.file];
            let line_of = |at: usize| {
                let before = file.text.get(..at).unwrap_or_default();
                u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
            };
            let is_there = (line_of(of.start)..=line_of(of.end)).contains(&line);
            if !is_there && !newer.contains(&file.path) {
                newer.push(file.path.clone());
            }
        }
        Ok(newer)
    }
}

fn time(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}
