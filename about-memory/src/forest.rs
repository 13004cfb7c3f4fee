//! Reports on their way into trees: one node for each path of each process, and the totals of all nodes.
//!
//! This is the part of Firefox's page that takes reports one by one. A report that adds to a path already seen costs no
//! memory at all.

mod names;
mod totals;

use crate::amount::Amount;
use crate::filter::Filter;
use crate::numbers::Unit;
use crate::page::File;
use crate::refusal::ReportFault;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use memreport::snapshot::read::{Entry, Field};
use names::{Directories, Name, NewName, Span, Texts};
use std::hash::BuildHasher;

pub use names::shown_name;

/// The place of a node in its forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

impl NodeId {
    pub(crate) const NONE: NodeId = NodeId(u32::MAX);
    /// Parents of roots are above this: two for each process, one for its trees and one for its flat measurements.
    const LAST: u32 = u32::MAX / 2;

    fn root_parent(process: usize, is_flat: bool) -> Self {
        let process = u32::try_from(process).unwrap_or(u32::MAX) % (NodeId::LAST / 2);
        NodeId(u32::MAX - 1 - 2 * process - u32::from(is_flat))
    }

    fn is_none(self) -> bool {
        self == NodeId::NONE
    }
}

/// In which of two compared files a report stands, if it does not stand in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// In both, or nothing is compared.
    #[default]
    Both,
    /// Only in the first: `[-]`.
    First,
    /// Only in the second: `[+]`.
    Second,
    /// In neither: added because one file has a leaf where the other has a tree, `[!]`.
    Added,
}

/// One segment of a path.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Name,
    pub(crate) parent: NodeId,
    pub(crate) first_kid: NodeId,
    last_kid: NodeId,
    /// The parent's next kid, in the order of arrival.
    pub(crate) next: NodeId,
    pub(crate) kids: u32,
    /// The only kid, once it has become one with this node; its name follows this one's.
    pub(crate) absorbed: NodeId,
    /// How many reports were added up here; 0 for one.
    pub(crate) merged: u32,
    description: Span,
    /// That of the leaf; after [`Forest::total`], of each node the sum of all at or below it.
    pub(crate) amount: Amount,
    pub(crate) unit: Unit,
    pub(crate) presence: Presence,
}

/// What is known of one process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// Whether this is the process that wrote the file, which its reports do not name.
    pub(crate) is_writer: bool,
    pub(crate) resident: Amount,
    pub(crate) resident_unique: Amount,
    /// Whether any report is left after filtering.
    pub(crate) has_reports: bool,
    pub(crate) trees: Vec<NodeId>,
    pub(crate) flats: Vec<NodeId>,
    heap_total: Amount,
}

impl Process {
    /// The main process comes first and is counted with all its resident memory.
    pub(crate) fn is_main(&self) -> bool {
        self.is_writer || self.name.starts_with("Main Process")
    }
}

/// All reports of a file, as trees.
#[derive(Debug, Default)]
pub struct Forest {
    pub(crate) nodes: Vec<Node>,
    names: String,
    descriptions: Texts,
    /// From parent and name to the node, each with its hash.
    kids: HashTable<(u64, NodeId)>,
    directories: Directories,
    hasher: DefaultHashBuilder,
    pub(crate) processes: Vec<Process>,
    processes_by_name: HashMap<Box<str>, usize>,
    filter: Filter,
    /// That of the report before; most often it is the next one's too.
    last_process: Option<usize>,
    /// Measurements that have a name on which Firefox's page loses them.
    pub lost: Vec<String>,
}

/// Names that every JavaScript object has already.
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

impl Forest {
    /// A forest that takes the reports whose path matches.
    pub fn new(filter: Filter) -> Self {
        Forest { filter, ..Forest::default() }
    }

    /// Forgets all reports.
    pub fn clear(&mut self) {
        *self = Forest::new(std::mem::take(&mut self.filter));
    }

    /// Names the process that wrote the file; its reports name none.
    pub fn name_writer(&mut self, name: &str) {
        for process in self.processes.iter_mut().filter(|process| process.is_writer) {
            name.clone_into(&mut process.name);
        }
    }

    /// Tells processes from those of the same name in other files, by the name of this file.
    pub fn rename_processes_of(&mut self, others: &[File], file: &str) {
        for process in &mut self.processes {
            let is_taken = |other: &File| {
                other.forest.processes.iter().any(|theirs| theirs.name == process.name)
            };
            if others.iter().any(is_taken) {
                process.name = format!("{} [{file}]", process.name);
            }
        }
    }

    /// Adds a report.
    ///
    /// # Errors
    /// Says why Firefox's page would refuse the report, and with it the file.
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
        // The first report, or the first that is not zero: a zero is replaced, not added to.
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
            Field::Number(number) if field.is_truthy() => &crate::amount::number_to_string(*number),
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

    /// The node of a report's path, made if need be; `None` where Firefox's page loses the report.
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
                    // A segment is as it is meant; its slashes are what a path writes as backslashes.
                    let is_literal = segment.contains('\\');
                    let text =
                        if is_literal { segment.clone() } else { segment.replace('/', "\\") };
                    node = self.kid(node, NewName { text: &text, is_literal }, process, unit);
                }
                node
            }
        };
        if !is_flat && root == "explicit" && entry.kind == Field::Number(1.0) {
            self.processes[process].heap_total.add(&Amount::from(&entry.amount));
        }
        Ok(Some(leaf))
    }

    /// Follows a path, making what is missing of it.
    fn walk(&mut self, process: usize, path: &str, is_flat: bool, unit: Unit) -> NodeId {
        let root_parent = NodeId::root_parent(process, is_flat);
        let Some((directory, name)) = path.rsplit_once('/') else {
            return self.kid(root_parent, path.into(), process, unit);
        };
        let parent = self.directory(process, directory, root_parent, unit);
        self.kid(parent, name.into(), process, unit)
    }

    /// The node at which others hang: known, or below one that is known, or else followed from the root.
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
            .fold(start, |node, segment| self.kid(node, segment.into(), process, unit));
        self.directories.insert(process, path, node);
        node
    }

    fn kid(&mut self, parent: NodeId, name: NewName<'_>, process: usize, unit: Unit) -> NodeId {
        if let Some(kid) = self.find_kid(parent, name) {
            return kid;
        }
        let kid = self.push_kid(parent, name, unit);
        if parent == NodeId::root_parent(process, false) {
            self.processes[process].trees.push(kid);
        } else if parent == NodeId::root_parent(process, true) {
            self.processes[process].flats.push(kid);
        }
        kid
    }

    fn find_kid(&self, parent: NodeId, name: NewName<'_>) -> Option<NodeId> {
        let hash = self.hash(parent, name);
        let is_same = |&(known_hash, kid): &(u64, NodeId)| {
            let node = self.node(kid);
            known_hash == hash
                && node.parent == parent
                && node.name.is_literal == name.is_literal
                && node.name.span.of(&self.names) == name.text
        };
        self.kids.find(hash, is_same).map(|&(_, kid)| kid)
    }

    fn hash(&self, parent: NodeId, name: NewName<'_>) -> u64 {
        self.hasher.hash_one((parent, name.text))
    }

    fn push_kid(&mut self, parent: NodeId, name: NewName<'_>, unit: Unit) -> NodeId {
        // Two thousand million nodes are 140 GB: the reader's limit on the text comes first.
        let kid = NodeId(u32::try_from(self.nodes.len()).unwrap_or(NodeId::LAST));
        let hash = self.hash(parent, name);
        self.kids.insert_unique(hash, (hash, kid), |known| known.0);
        let name =
            Name { span: Span::append(&mut self.names, name.text), is_literal: name.is_literal };
        self.nodes.push(Node {
            name,
            parent,
            first_kid: NodeId::NONE,
            last_kid: NodeId::NONE,
            next: NodeId::NONE,
            kids: 0,
            absorbed: NodeId::NONE,
            merged: 0,
            description: Span::default(),
            amount: Amount::Undefined,
            unit,
            presence: Presence::Both,
        });
        if parent.0 < NodeId::LAST {
            let parent = &mut self.nodes[parent.0 as usize];
            let elder = std::mem::replace(&mut parent.last_kid, kid);
            parent.kids += 1;
            if elder.is_none() {
                parent.first_kid = kid;
            } else {
                self.nodes[elder.0 as usize].next = kid;
            }
        }
        kid
    }

    /// All nodes, parents before kids.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(NodeId::LAST)).map(NodeId)
    }

    /// The path of a node, as the file has it. Nodes that are shown as one are still several here.
    pub(crate) fn segments(&self, node: NodeId) -> Vec<&str> {
        let mut segments = Vec::new();
        let mut at = node;
        while at.0 < NodeId::LAST {
            segments.push(self.node(at).name.span.of(&self.names));
            at = self.node(at).parent;
        }
        segments.reverse();
        segments
    }

    /// The root of a node's tree, and its process.
    pub(crate) fn root_and_process(&self, node: NodeId) -> (NodeId, &str) {
        let mut root = node;
        while self.node(root).parent.0 < NodeId::LAST {
            root = self.node(root).parent;
        }
        let process = (u32::MAX - 1 - self.node(root).parent.0) / 2;
        (root, self.processes.get(process as usize).map_or("", |process| &process.name))
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn kids_of(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let first = self.node(id).first_kid;
        std::iter::successors((!first.is_none()).then_some(first), |&kid| {
            let next = self.node(kid).next;
            (!next.is_none()).then_some(next)
        })
    }

    /// The name of a node as the file has it, with those it has absorbed.
    pub(crate) fn name(&self, id: NodeId) -> String {
        self.join_names(id, |name| name.span.of(&self.names).to_owned())
    }

    /// The same as people read it; `None` where that is only a matter of turning backslashes round.
    pub(crate) fn literal_name(&self, mut id: NodeId) -> Option<String> {
        let whole = id;
        loop {
            if self.node(id).name.is_literal {
                return Some(self.join_names(whole, |name| match name.is_literal {
                    true => name.span.of(&self.names).to_owned(),
                    false => shown_name(name.span.of(&self.names)).into_owned(),
                }));
            }
            id = self.node(id).absorbed;
            if id.is_none() {
                return None;
            }
        }
    }

    fn join_names(&self, mut id: NodeId, name: impl Fn(Name) -> String) -> String {
        let mut joined = name(self.node(id).name);
        while !self.node(id).absorbed.is_none() {
            id = self.node(id).absorbed;
            joined.push('/');
            joined.push_str(&name(self.node(id).name));
        }
        joined
    }

    pub(crate) fn description(&self, id: NodeId) -> &str {
        self.descriptions.get(self.node(id).description)
    }
}

/// The unit that a report names by number.
pub(crate) fn unit(field: &Field<'_>) -> Unit {
    let known = [Unit::Bytes, Unit::Count, Unit::CountCumulative, Unit::Percentage];
    let named = known
        .into_iter()
        .zip([0.0, 1.0, 2.0, 3.0])
        .find(|(_, number)| *field == Field::Number(*number));
    named.map_or(Unit::Unknown, |(unit, _)| unit)
}

fn presence(field: &Field<'_>) -> Result<Presence, ReportFault> {
    match field {
        Field::Missing => Ok(Presence::Both),
        Field::Number(1.0) => Ok(Presence::First),
        Field::Number(2.0) => Ok(Presence::Second),
        other => Err(ReportFault::Presence(other.clone().into_owned())),
    }
}
