//! Holds the report tree of one file and its name among other files.

use super::build::ReportTree;

/// A file that has been read, with all totals made.
#[derive(Debug)]
pub struct File {
    /// Its reports.
    pub report_tree: ReportTree,
    /// Firefox's `hasMozMallocUsableSize`.
    pub knows_usable_size: bool,
    /// Whether reports were left out.
    pub is_filtered: bool,
    /// Invalid paths that the page has listed for nobody yet: Firefox's page keeps them for the next process that has a
    /// tree `explicit`, even over a change of the filter.
    pub invalid_before: Vec<String>,
}

impl File {
    /// Tells processes from those of the same name in other files, by the name of this file.
    pub fn rename_processes_of(&mut self, others: &[File], file: &str) {
        for process in &mut self.report_tree.processes {
            let is_taken = |other: &File| {
                other.report_tree.processes.iter().any(|theirs| theirs.name == process.name)
            };
            if others.iter().any(is_taken) {
                process.name = format!("{} [{file}]", process.name);
            }
        }
    }
}
