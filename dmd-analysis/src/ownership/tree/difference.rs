//! The difference of two trees, row by row.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{OwnerRow, RowKind};

/// A row of two trees. All bytes are usable bytes of the row and of all rows below it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerChange {
    /// Its name, without the numbers of threads.
    pub name: String,
    /// The kind.
    pub kind: RowKind,
    /// True if in one of the trees only a word that looks like a pointer leads to the blocks.
    pub is_uncertain: bool,
    /// The bytes in the first tree; 0 if it has no such row.
    pub bytes_before: u64,
    /// The bytes in the second tree.
    pub bytes_after: u64,
    /// The number of the row's own blocks in the first tree.
    pub blocks_before: u64,
    /// The number of the row's own blocks in the second tree.
    pub blocks_after: u64,
    /// The rows below it, those with the largest changes first.
    pub children: Vec<OwnerChange>,
}

impl OwnerChange {
    /// Returns the bytes that the second tree has more than the first.
    #[must_use]
    pub fn bytes(&self) -> i128 {
        i128::from(self.bytes_after) - i128::from(self.bytes_before)
    }

    /// Returns the number of own blocks that the second tree has more than the first.
    #[must_use]
    pub fn blocks(&self) -> i128 {
        i128::from(self.blocks_after) - i128::from(self.blocks_before)
    }
}

/// Compares the rows of two trees of one program, by their names. Threads are the same if they have
/// the same name; their numbers differ from run to run.
///
/// # Examples
///
/// ```
/// use memreport_analysis::ownership::{OwnerTree, OwnerTreeOptions, owner_difference};
/// use memreport_analysis::symbols::Types;
///
/// let tree = |bytes: u64| {
///     let dump = format!(
///         r#"{{"version": 5, "invocation": {{"dmdEnvVar": null, "mode": "scan"}},
///             "blockList": [{{"req": {bytes}, "addr": "100"}}],
///             "memreport": {{"version": 1, "statics":
///                 [{{"module": "/p", "offset": "8", "name": "p::CACHE", "to": "100"}}]}},
///             "traceTable": {{}}, "frameTable": {{}}}}"#
///     );
///     let dump = memreport_analysis::read::read_slice(dump.as_bytes()).unwrap();
///     OwnerTree::new(&dump, &Types::default(), &OwnerTreeOptions::default()).unwrap()
/// };
/// let changes = owner_difference(&tree(100).rows, &tree(400).rows);
/// assert_eq!((&*changes[0].name, changes[0].bytes()), ("p::CACHE", 300));
/// ```
#[must_use]
pub fn owner_difference(before: &[OwnerRow], after: &[OwnerRow]) -> Vec<OwnerChange> {
    compare(before.iter().collect(), after.iter().collect())
}

/// Rows with one name and kind: of the first tree, and of the second.
type Alike<'t> = [Vec<&'t OwnerRow>; 2];

fn compare<'t>(before: Vec<&'t OwnerRow>, after: Vec<&'t OwnerRow>) -> Vec<OwnerChange> {
    let mut alike: FxHashMap<(String, RowKind), Alike<'t>> = FxHashMap::default();
    for (side, rows) in [before, after].into_iter().enumerate() {
        for row in rows {
            alike.entry((stable_name(row), row.kind)).or_default()[side].push(row);
        }
    }
    let mut changes: Vec<OwnerChange> =
        alike.into_iter().map(|((name, kind), rows)| change(name, kind, &rows)).collect();
    changes.sort_by(|a, b| {
        let size = |of: &OwnerChange| Reverse((of.bytes().unsigned_abs(), of.bytes_after));
        (size(a), &a.name).cmp(&(size(b), &b.name))
    });
    changes
}

fn change(name: String, kind: RowKind, rows: &Alike<'_>) -> OwnerChange {
    let sum = |rows: &[&OwnerRow], of: fn(&OwnerRow) -> u64| {
        rows.iter().map(|row| of(row)).fold(0, u64::saturating_add)
    };
    let [before, after] = rows;
    OwnerChange {
        name,
        kind,
        is_uncertain: before.iter().chain(after).any(|row| row.is_uncertain),
        bytes_before: sum(before, |row| row.bytes),
        bytes_after: sum(after, |row| row.bytes),
        blocks_before: sum(before, |row| row.blocks),
        blocks_after: sum(after, |row| row.blocks),
        children: compare(children(before), children(after)),
    }
}

fn children<'t>(rows: &[&'t OwnerRow]) -> Vec<&'t OwnerRow> {
    rows.iter().flat_map(|row| &row.children).collect()
}

/// Returns the name of a row without numbers of threads: `thread (worker)`.
fn stable_name(row: &OwnerRow) -> String {
    const THREAD: &str = "thread ";
    if !matches!(row.kind, RowKind::Memory | RowKind::Several) {
        return row.name.clone();
    }
    let mut parts = row.name.split(THREAD);
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let is_number = rest.len() < part.len();
        name.push_str(if is_number { THREAD.trim_end() } else { THREAD });
        name.push_str(rest);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, kind: RowKind, own: u64, children: Vec<OwnerRow>) -> OwnerRow {
        let bytes = own + children.iter().map(|child| child.bytes).sum::<u64>();
        OwnerRow {
            name: name.to_owned(),
            kind,
            is_uncertain: false,
            bytes,
            own,
            blocks: own / 8,
            typed: 0,
            used: 0,
            places: 0,
            spare: 0,
            compared: 0,
            copies: 0,
            copied_blocks: 0,
            children,
        }
    }

    fn shown(changes: &[OwnerChange], level: usize, out: &mut String) {
        for change in changes {
            let OwnerChange { name, bytes_before, bytes_after, .. } = change;
            let (bytes, blocks) = (change.bytes(), change.blocks());
            let indent = "  ".repeat(level);
            *out += &format!("{indent}{name} {bytes_before} {bytes_after} {bytes} {blocks}\n");
            shown(&change.children, level + 1, out);
        }
    }

    #[test]
    fn rows_are_the_same_by_name_and_threads_without_their_numbers() {
        let list = |bytes| row("list: Vec<u8>", RowKind::Blocks, bytes, Vec::new());
        let worker = |number: u32, bytes| {
            row(&format!("thread {number} (worker)"), RowKind::Memory, 0, vec![list(bytes)])
        };
        let before = [
            row("p::A", RowKind::Static, 0, vec![list(80)]),
            worker(7, 8),
            row("p::GONE", RowKind::Static, 16, Vec::new()),
        ];
        let after =
            [row("p::A", RowKind::Static, 0, vec![list(80)]), worker(30, 40), worker(31, 24)];
        let mut text = String::new();
        shown(&owner_difference(&before, &after), 0, &mut text);
        let expected = "\
thread (worker) 8 64 56 0
  list: Vec<u8> 8 64 56 7
p::GONE 16 0 -16 -2
p::A 80 80 0 0
  list: Vec<u8> 80 80 0 0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn only_numbers_of_threads_are_left_out() {
        for (name, kind, expected) in [
            ("thread 7 (io)", RowKind::Memory, "thread (io)"),
            ("thread 7", RowKind::Memory, "thread"),
            (
                "a: A of thread 7 (x) and static thread pool",
                RowKind::Several,
                "a: A of thread (x) and static thread pool",
            ),
            ("thread 7", RowKind::Static, "thread 7"),
        ] {
            assert_eq!(stable_name(&row(name, kind, 0, Vec::new())), expected);
        }
    }
}
