//! Builds a report tree: takes reports one by one and makes the nodes of their paths.
//!
//! A report for a known path allocates no memory.

use super::names::{Directories, Name, NewName, Span, Texts};
use super::node::{Node, NodeId, Presence, Process, unit};
use super::refusal::ReportFault;
use crate::report::amount::{self, Amount};
use crate::report::filter::Filter;
use crate::report::numbers::Unit;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use memreport::snapshot::read::{Entry, Field};
use std::hash::BuildHasher;

/// All reports of a file, as trees.
#[derive(Debug, Default)]
pub struct ReportTree {
    pub(crate) nodes: Vec<Node>,
    pub(super) names: String,
    pub(super) descriptions: Texts,
    /// Maps parent and name to a node. Each entry has its hash.
    children: HashTable<(u64, NodeId)>,
    directories: Directories,
    hasher: DefaultHashBuilder,
    pub(crate) processes: Vec<Process>,
    processes_by_name: HashMap<Box<str>, usize>,
    filter: Filter,
    /// The process of the last report. Most often the next report has the same.
    last_process: Option<usize>,
    /// Measurements whose names Firefox's page cannot show.
    pub lost: Vec<String>,
}

/// The most nodes that reports may have. They take about 800 MB.
const MOST_NODES: usize = 4 << 20;

/// Names of properties that every JavaScript object has.
const RESERVED: [&str; 12] = [
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
];

impl ReportTree {
    /// Makes a tree that takes the reports whose path matches.
    pub fn new(filter: Filter) -> Self {
        ReportTree { filter, ..ReportTree::default() }
    }

    /// Removes all reports.
    pub fn clear(&mut self) {
        *self = ReportTree::new(std::mem::take(&mut self.filter));
    }

    /// Sets the name of the process that wrote the file. Its reports do not contain it.
    pub fn name_writer(&mut self, name: &str) {
        for process in self.processes.iter_mut().filter(|process| process.is_writer) {
            name.clone_into(&mut process.name);
        }
    }

    /// Marks the nodes of these paths in every process, and all above them: reporters of the
    /// program's report there.
    ///
    /// Takes time for each node and each path, but not for each path of each process, since files
    /// may have many of both.
    pub(crate) fn mark_reporters(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        // The paths and all above them, numbered. Each is found by the one above and a segment.
        let mut numbers: HashMap<(Option<usize>, &str), usize> = HashMap::new();
        for path in paths {
            let mut above = None;
            for segment in path.split('/') {
                let next = numbers.len();
                above = Some(*numbers.entry((above, segment)).or_insert(next));
            }
        }
        let mut marked: Vec<Option<usize>> = Vec::with_capacity(self.nodes.len());
        // A node comes before its children.
        for node in &mut self.nodes {
            let parent = marked.get(node.parent.0 as usize);
            let name = node.name.span.of(&self.names);
            // The parent of a root is no node.
            let number = match parent {
                Some(None) => None,
                Some(Some(above)) => numbers.get(&(Some(*above), name)),
                None => numbers.get(&(None, name)),
            };
            node.has_reporter = number.is_some();
            marked.push(number.copied());
        }
    }

    /// Adds a report.
    ///
    /// # Errors
    /// Firefox's page would refuse the report, and with it the file.
    pub fn add(&mut self, entry: &Entry<'_>) -> Result<(), ReportFault> {
        if entry.path.starts_with("explicit/") {
            if !matches!(&entry.kind, Field::Number(kind) if *kind == 0.0 || *kind == 1.0) {
                return Err(ReportFault::KindInExplicit(entry.kind.clone().into_owned()));
            }
            if entry.units != Field::Number(0.0) {
                return Err(ReportFault::UnitsInExplicit(entry.units.clone().into_owned()));
            }
        }
        let presence = presence(&entry.presence)?;
        let amount = Amount::from(&entry.amount);
        let process = self.process(&entry.process);
        match entry.path {
            "resident" => self.processes[process].resident = amount.clone(),
            "resident-unique" => self.processes[process].resident_unique = amount.clone(),
            _ => {}
        }
        if !self.filter.matches(entry.path) {
            return Ok(());
        }
        if RESERVED.contains(&&*self.processes[process].name) && !self.processes[process].is_writer
        {
            return Err(ReportFault::ReservedProcess(self.processes[process].name.clone()));
        }
        self.processes[process].has_reports = true;
        let slashes = entry.path.bytes().filter(|byte| *byte == b'/').count();
        if self.nodes.len() + slashes.max(entry.segments.map_or(0, <[_]>::len)) >= MOST_NODES {
            return Err(ReportFault::TooManyPaths { limit: MOST_NODES });
        }
        let Some(leaf) = self.leaf(process, entry)? else { return Ok(()) };
        self.add_amount(leaf, amount, presence, &entry.description)
    }

    fn add_amount(
        &mut self,
        leaf: NodeId,
        amount: Amount,
        presence: Presence,
        description: &Field<'_>,
    ) -> Result<(), ReportFault> {
        let node = &mut self.nodes[leaf.0 as usize];
        if node.amount.is_truthy() {
            node.amount.add(&amount);
            node.merged = if node.merged == 0 { 2 } else { node.merged + 1 };
            if node.presence != presence {
                return Err(ReportFault::PresenceMismatch);
            }
            return Ok(());
        }
        // The first report, or the first that is not zero: replace a zero instead of adding to it.
        node.amount = amount;
        if presence != Presence::Both {
            node.presence = presence;
        }
        if let Field::Text(text) = description {
            let description = self.descriptions.keep(text);
            self.nodes[leaf.0 as usize].description = description;
        }
        Ok(())
    }

    fn process(&mut self, field: &Field<'_>) -> usize {
        let name = match field {
            Field::Text(text) | Field::Composite(text) => text.as_ref(),
            Field::Bool(true) => "true",
            Field::Number(number) if field.is_truthy() => &amount::number_to_string(*number),
            _ => "",
        };
        let is_named = |process: &Process| {
            if process.is_writer { name.is_empty() } else { process.name == name }
        };
        if let Some(last) = self.last_process.filter(|&last| is_named(&self.processes[last])) {
            return last;
        }
        if let Some(&process) = self.processes_by_name.get(name) {
            self.last_process = Some(process);
            return process;
        }
        let process = self.processes.len();
        self.processes_by_name.insert(name.into(), process);
        self.processes.push(Process {
            name: if name.is_empty() { "Main Process".into() } else { name.to_owned() },
            is_writer: name.is_empty(),
            heap_total: Amount::Number(0.0),
            ..Process::default()
        });
        process
    }

    /// Returns the node of a report's path, and creates it if needed; `None` if Firefox's page
    /// loses the report.
    fn leaf(&mut self, process: usize, entry: &Entry<'_>) -> Result<Option<NodeId>, ReportFault> {
        let unit = unit(&entry.units);
        let is_flat = entry
            .segments
            .map_or_else(|| !entry.path.contains('/'), |segments| segments.len() == 1);
        let root = entry
            .segments
            .map_or_else(|| entry.path.split('/').next().unwrap_or(""), |segments| &segments[0]);
        if RESERVED.contains(&root) {
            if is_flat && root != "__proto__" {
                self.lost.push(root.to_owned());
                return Ok(None);
            }
            return Err(ReportFault::ReservedTree(root.to_owned()));
        }
        let leaf = match entry.segments {
            None => self.walk(process, entry.path, is_flat, unit),
            Some(segments) => {
                let mut node = NodeId::root_parent(process, is_flat);
                for segment in segments {
                    // Segments are literal: their slashes become the backslashes of paths.
                    let is_literal = segment.contains('\\');
                    let text =
                        if is_literal { segment.clone() } else { segment.replace('/', "\\") };
                    node = self.child(node, NewName { text: &text, is_literal }, process, unit);
                }
                node
            }
        };
        if !is_flat && root == "explicit" && entry.kind == Field::Number(1.0) {
            self.processes[process].heap_total.add(&Amount::from(&entry.amount));
        }
        Ok(Some(leaf))
    }

    /// Returns the node of a path, and creates missing ones.
    fn walk(&mut self, process: usize, path: &str, is_flat: bool, unit: Unit) -> NodeId {
        let root_parent = NodeId::root_parent(process, is_flat);
        let Some((directory, name)) = path.rsplit_once('/') else {
            return self.child(root_parent, path.into(), process, unit);
        };
        let parent = self.directory(process, directory, root_parent, unit);
        self.child(parent, name.into(), process, unit)
    }

    /// Returns the node of a path without its last segment. Looks it up, then its parent, then
    /// walks from the root.
    fn directory(&mut self, process: usize, path: &str, root_parent: NodeId, unit: Unit) -> NodeId {
        if let Some(known) = self.directories.find(process, path) {
            return known;
        }
        let above = path.rsplit_once('/');
        let above = above.and_then(|(above, name)| {
            self.directories.find(process, above).map(|node| (node, name))
        });
        let (start, rest) = above.unwrap_or((root_parent, path));
        let node = rest
            .split('/')
            .fold(start, |node, segment| self.child(node, segment.into(), process, unit));
        self.directories.insert(process, path, node);
        node
    }

    fn child(&mut self, parent: NodeId, name: NewName<'_>, process: usize, unit: Unit) -> NodeId {
        if let Some(child) = self.find_child(parent, name) {
            return child;
        }
        let child = self.push_child(parent, name, unit);
        if parent == NodeId::root_parent(process, false) {
            self.processes[process].trees.push(child);
        } else if parent == NodeId::root_parent(process, true) {
            self.processes[process].flats.push(child);
        }
        child
    }

    pub(super) fn find_child(&self, parent: NodeId, name: NewName<'_>) -> Option<NodeId> {
        let hash = self.hash(parent, name);
        let is_same = |&(known_hash, child): &(u64, NodeId)| {
            let node = self.node(child);
            known_hash == hash
                && node.parent == parent
                && node.name.is_literal == name.is_literal
                && node.name.span.of(&self.names) == name.text
        };
        self.children.find(hash, is_same).map(|&(_, child)| child)
    }

    fn hash(&self, parent: NodeId, name: NewName<'_>) -> u64 {
        self.hasher.hash_one((parent, name.text))
    }

    pub(super) fn push_child(&mut self, parent: NodeId, name: NewName<'_>, unit: Unit) -> NodeId {
        let child = NodeId(u32::try_from(self.nodes.len()).unwrap_or(NodeId::LAST));
        let hash = self.hash(parent, name);
        self.children.insert_unique(hash, (hash, child), |known| known.0);
        let name =
            Name { span: Span::append(&mut self.names, name.text), is_literal: name.is_literal };
        self.nodes.push(Node {
            name,
            parent,
            first_child: NodeId::NONE,
            last_child: NodeId::NONE,
            next: NodeId::NONE,
            children: 0,
            absorbed: NodeId::NONE,
            merged: 0,
            description: Span::default(),
            amount: Amount::Undefined,
            unit,
            presence: Presence::Both,
            has_reporter: false,
        });
        if parent.0 < NodeId::LAST {
            let parent = &mut self.nodes[parent.0 as usize];
            let elder = std::mem::replace(&mut parent.last_child, child);
            parent.children += 1;
            if elder.is_none() {
                parent.first_child = child;
            } else {
                self.nodes[elder.0 as usize].next = child;
            }
        }
        child
    }
}

fn presence(field: &Field<'_>) -> Result<Presence, ReportFault> {
    match field {
        Field::Missing => Ok(Presence::Both),
        Field::Number(1.0) => Ok(Presence::First),
        Field::Number(2.0) => Ok(Presence::Second),
        other => Err(ReportFault::Presence(other.clone().into_owned())),
    }
}
