//! Arranges a page: the processes in order, with the trees of each.

pub mod file_builder;

use super::amount::{Amount, compare_strings};
use super::numbers::{self, Unit};
use super::order::{self, Names};
use super::report_tree::node::Process;
use super::report_tree::{File, ReportTree};
use super::tree::{Settings, Tree};
use std::cmp::Ordering;

/// One or several files to show, with settings.
#[derive(Debug)]
pub struct Page<'f> {
    /// The files: reports with totals.
    pub files: &'f [File],
    /// The settings of the trees.
    pub settings: &'f Settings,
    /// Show only processes with this text in their name.
    pub process: Option<&'f str>,
    names: Names,
    order: Vec<Place>,
}

/// The place of a process: its file and index.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: usize,
    process: usize,
}

/// The contents of a process.
#[derive(Debug)]
pub struct ProcessPage<'f> {
    /// The name of the process.
    pub name: &'f str,
    /// The file it comes from.
    pub report_tree: &'f ReportTree,
    /// Warnings that the tree `explicit` is incomplete, in Firefox's words.
    pub warnings: Vec<&'static str>,
    /// The paths of invalid values.
    pub invalid: Vec<String>,
    /// The tree `explicit`.
    pub explicit: Option<Tree>,
    /// The other trees.
    pub trees: Vec<Tree>,
    /// The measurements outside trees.
    pub flats: Vec<Tree>,
}

impl<'f> Page<'f> {
    /// Sorts the processes of all files.
    pub fn new(files: &'f [File], settings: &'f Settings) -> Self {
        let mut order = Vec::new();
        for (file, content) in files.iter().enumerate() {
            let processes = &content.report_tree.processes;
            order.extend((0..processes.len()).map(|process| Place { file, process }));
        }
        let process = |place: Place| &files[place.file].report_tree.processes[place.process];
        order::like_an_object(&mut order, |&place| process(place).name.clone());
        order::sort_by(&mut order, |a, b| compare_processes(process(a), process(b)));
        Page { files, settings, process: None, names: Names::default(), order }
    }

    /// Returns the resident memory of all processes: `493.20 MB`. Adds in order of arrival: the sum
    /// of doubles depends on it.
    pub fn total_resident(&self) -> String {
        let mut total = Amount::Number(0.0);
        for file in self.files {
            let mut processes: Vec<&Process> = file.report_tree.processes.iter().collect();
            order::like_an_object(&mut processes, |process| process.name.clone());
            let wanted = processes.iter().filter(|process| self.is_wanted(process));
            wanted.for_each(|process| total.add(&process.resident_share()));
        }
        numbers::amount(&total, Unit::Bytes, self.settings.bytes())
    }

    /// Passes every process with reports to `each`, in order. Returns the invalid paths that no
    /// process has listed.
    ///
    /// # Errors
    /// The first error of `each`.
    pub fn processes<E>(
        &self,
        mut each: impl FnMut(ProcessPage<'f>) -> Result<(), E>,
    ) -> Result<Vec<String>, E> {
        let mut invalid: Vec<String> =
            self.files.iter().flat_map(|file| file.invalid_before.clone()).collect();
        for place in &self.order {
            let process = &self.files[place.file].report_tree.processes[place.process];
            if process.has_reports && self.is_wanted(process) {
                each(self.process_page(*place, &mut invalid))?;
            }
        }
        Ok(invalid)
    }

    fn is_wanted(&self, process: &Process) -> bool {
        self.process.is_none_or(|wanted| process.name.contains(wanted))
    }

    fn process_page(&self, place: Place, invalid: &mut Vec<String>) -> ProcessPage<'f> {
        let file = &self.files[place.file];
        let report_tree = &file.report_tree;
        let process = &report_tree.processes[place.process];
        let mut roots = process.trees.clone();
        order::like_an_object(&mut roots, |&root| report_tree.name(root));
        let mut page = ProcessPage {
            name: &process.name,
            report_tree,
            warnings: Vec::new(),
            invalid: Vec::new(),
            explicit: None,
            trees: Vec::new(),
            flats: Vec::new(),
        };
        for root in roots {
            let tree = Tree::new(report_tree, root, &self.names, self.settings);
            if tree.root().name == "explicit" {
                page.explicit = Some(tree);
            } else {
                page.trees.push(tree);
            }
        }
        let mut flats = process.flats.clone();
        order::like_an_object(&mut flats, |&flat| report_tree.name(flat));
        page.flats =
            flats.iter().map(|&flat| Tree::flat(report_tree, flat, self.settings)).collect();
        self.sort(&mut page.trees);
        self.sort(&mut page.flats);
        let drawn = page.explicit.iter().chain(&page.trees).chain(&page.flats);
        invalid.extend(drawn.flat_map(|tree| tree.invalid.iter().cloned()));
        if page.explicit.is_some() {
            let knows_allocated =
                page.flats.iter().any(|flat| flat.root().name == "heap-allocated");
            page.warnings = warnings(file, knows_allocated);
            page.invalid = std::mem::take(invalid);
        }
        page
    }

    fn sort(&self, trees: &mut Vec<Tree>) {
        let mut order: Vec<usize> = (0..trees.len()).collect();
        order::sort_by(&mut order, |a, b| {
            self.names.compare(&trees[a].root().name, &trees[b].root().name)
        });
        let mut unsorted: Vec<Option<Tree>> = std::mem::take(trees).into_iter().map(Some).collect();
        trees.extend(order.into_iter().filter_map(|index| unsorted[index].take()));
    }
}

/// Orders main processes first, then by resident memory, then by name.
fn compare_processes(a: &Process, b: &Process) -> Ordering {
    if a.is_main() {
        return Ordering::Less;
    }
    if b.is_main() {
        return Ordering::Greater;
    }
    let resident = |process: &Process| match process.resident.is_truthy() {
        true => process.resident.clone(),
        false => Amount::Number(-1.0),
    };
    match resident(b).compare(&resident(a)) {
        Some(order @ (Ordering::Less | Ordering::Greater)) => order,
        _ => compare_strings(&a.name, &b.name),
    }
}

fn warnings(file: &File, knows_allocated: bool) -> Vec<&'static str> {
    if file.is_filtered {
        return Vec::new();
    }
    match (knows_allocated, file.knows_usable_size) {
        (true, true) => Vec::new(),
        (false, false) => vec![
            "WARNING: the 'heap-allocated' memory reporter and the moz_malloc_usable_size() function do not work for \
             this platform and/or configuration. This means that 'heap-unclassified' is not shown and the 'explicit' \
             tree shows much less memory than it should.",
        ],
        (false, true) => vec![
            "WARNING: the 'heap-allocated' memory reporter does not work for this platform and/or configuration. This \
             means that 'heap-unclassified' is not shown and the 'explicit' tree shows less memory than it should.",
        ],
        (true, false) => vec![
            "WARNING: the moz_malloc_usable_size() function does not work for this platform and/or configuration. This \
             means that much of the heap-allocated memory is not measured by individual memory reporters and so will \
             fall under 'heap-unclassified'.",
        ],
    }
}
