//! Holds the report tree of one file.

use super::build::ReportTree;

/// A file that has been read, with all totals.
#[derive(Debug)]
pub struct File {
    /// Its reports.
    pub report_tree: ReportTree,
    /// Firefox's `hasMozMallocUsableSize`.
    pub knows_usable_size: bool,
    /// True if a filter left out reports.
    pub is_filtered: bool,
    /// Invalid paths that the page has not listed yet. Firefox's page keeps them for the next
    /// process with a tree `explicit`, even when the filter changes.
    pub invalid_before: Vec<String>,
}

impl File {
    /// Adds the name of this file to processes whose names occur in other files.
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
