//! Looks up the stacks of production centrally: profiles come without symbols, a store has the
//! debug files of each build, and each stack of a build is looked up once.

pub mod debuginfod;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};
use std::fs;
use std::io;
use std::path::Path;

use about_memory::Failure;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use memreport_analysis::export::{Heap, HeapOptions};
use memreport_analysis::heap::GroupFrame;
use memreport_analysis::read;
use memreport_analysis::symbols::{Options, Symboliser};
use serde_json::{Map, json};
use sha2::{Digest, Sha256};

use crate::dataset::{NewFile, symbols_path};
use crate::gather::{borrowed, frame_text};
use crate::schema::{SYMBOLS, VERSION};
use crate::table::{Rows, Value, read_parquet};

/// A frame of a stack in the dataset.
#[derive(Debug, Clone)]
struct Frame {
    function: String,
    module: Option<String>,
    build_id: Option<String>,
    offset: Option<i64>,
}

/// A stack of the dataset.
type Stack = Vec<Frame>;

/// The number of stacks of a dataset, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Different stacks with addresses.
    pub stacks: usize,
    /// Those that had been looked up before.
    pub known: usize,
    /// Those that have functions now.
    pub added: usize,
}

/// The stacks of a dataset that have addresses and are not in its table `symbols`.
#[derive(Debug, Default)]
pub struct Unknown {
    /// By the build that most frames are in, and by number.
    builds: BTreeMap<String, BTreeMap<i64, Stack>>,
    found: Found,
}

impl Unknown {
    /// Reads them from a dataset.
    ///
    /// # Errors
    ///
    /// A file of the dataset cannot be read.
    pub fn of_dataset(dataset: &Path) -> Result<Self, Failure> {
        let root = dataset.join(format!("v{VERSION}"));
        let mut known: BTreeSet<i64> = BTreeSet::new();
        read_all(&root.join("symbols"), &mut |batch| {
            known.extend(ids(batch)?.iter().flatten());
            Ok(())
        })?;
        let mut unknown = Unknown::default();
        let mut seen = BTreeSet::new();
        read_all(&root.join("stacks"), &mut |batch| {
            for (id, stack) in stacks(batch)? {
                let Some(build) = build_of(&stack).filter(|_| seen.insert(id)) else { continue };
                unknown.found.stacks += 1;
                if known.contains(&id) {
                    unknown.found.known += 1;
                } else {
                    unknown.builds.entry(build).or_default().insert(id, stack);
                }
            }
            Ok(())
        })?;
        Ok(unknown)
    }

    /// Returns the build ids of all modules in these stacks.
    #[must_use]
    pub fn build_ids(&self) -> BTreeSet<&str> {
        let frames = self.builds.values().flat_map(BTreeMap::values).flatten();
        frames.filter_map(|frame| frame.build_id.as_deref()).collect()
    }

    /// Looks them up, and returns the files to add, one for each build. Stacks that are not found
    /// stay unknown, and are looked up next time.
    ///
    /// # Errors
    ///
    /// A file cannot be encoded.
    pub fn look_up(self, options: Options) -> Result<(Found, Vec<NewFile>), Failure> {
        let Unknown { builds, mut found } = self;
        let mut symboliser = Symboliser::new(options);
        let mut files = Vec::new();
        for (build, stacks) in builds {
            let rows = resolve(&mut symboliser, &build, &stacks)?;
            if rows.is_empty() {
                continue;
            }
            found.added += rows.len();
            // A file for each run: files are never changed.
            let mut hash = Sha256::new();
            stacks.keys().for_each(|id| hash.update(id.to_le_bytes()));
            let name = hash.finalize()[..8].iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            });
            files.push(NewFile { path: symbols_path(&build, &name), bytes: rows.parquet()? });
        }
        Ok((found, files))
    }
}

/// Returns the build that most frames of a stack are in; `None` if no frame has an address.
fn build_of(stack: &[Frame]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for frame in stack.iter().filter(|frame| frame.offset.is_some()) {
        *counts.entry(frame.build_id.as_deref()?).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(build, _)| build.to_owned())
}

/// Returns rows for the stacks of a build that have functions of this build now. Functions of
/// system libraries alone are not enough: the debug file may come later.
fn resolve(
    symboliser: &mut Symboliser,
    build: &str,
    stacks: &BTreeMap<i64, Stack>,
) -> Result<Rows, Failure> {
    let mut dump = read::read_slice(dump_of(stacks).to_string().as_bytes())?;
    symboliser.symbolicate(&mut dump);
    let heap = Heap::new(&dump, &HeapOptions::default())?;
    let ids: Vec<i64> = stacks.keys().copied().collect();
    let mut rows = Rows::new(&SYMBOLS);
    for group in heap.groups() {
        let frames: Vec<GroupFrame<'_>> = heap.stack_frames(group.stack).collect();
        let number = group.thread.and_then(|text| text.strip_prefix("thread "));
        let at = number.and_then(|text| text.parse::<usize>().ok());
        let Some((id, stack)) = at.and_then(|at| Some((ids.get(at)?, stacks.get(ids.get(at)?)?)))
        else {
            continue;
        };
        let is_of_build = |id: Option<&str>| id == Some(build);
        let before = stack.iter().filter(|frame| is_of_build(frame.build_id.as_deref())).count();
        let after = frames.iter().filter(|frame| is_of_build(frame.build_id)).count();
        if after >= before {
            continue;
        }
        let site = heap.site(group.stack).filter(|frame| frame.offset.is_none());
        let site = site.as_ref().map(frame_text);
        let functions: Vec<_> = frames.iter().map(|frame| Some(frame.function)).collect();
        let files: Vec<_> = frames.iter().map(|frame| frame.file.map(str::to_owned)).collect();
        let lines: Vec<_> = frames.iter().map(|frame| frame.line.map(i64::from)).collect();
        rows.push(&[
            Value::Int(*id),
            site.as_deref().into(),
            group.block_type.into(),
            Value::Texts(&functions),
            Value::Texts(&borrowed(&files)),
            Value::Ints(&lines),
        ]);
    }
    Ok(rows)
}

/// Returns a dump with a block for each stack. Its thread is the stack's number, which keeps blocks
/// apart whose stacks become the same.
fn dump_of(stacks: &BTreeMap<i64, Stack>) -> serde_json::Value {
    let (mut traces, mut frames) = (Map::new(), Map::new());
    let (mut blocks, mut modules) = (Vec::new(), BTreeMap::new());
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    for (number, stack) in stacks.values().enumerate() {
        let key_of = |frame: &Frame| {
            let text = match (&frame.module, frame.offset) {
                (Some(module), Some(offset)) => {
                    modules.insert(module.clone(), frame.build_id.clone());
                    format!("#00: ???[{module} +{offset:#x}]")
                }
                _ => format!("#00: {}", frame.function),
            };
            let next = key(keys.len());
            keys.entry(text).or_insert(next).clone()
        };
        let list: Vec<String> = stack.iter().map(key_of).collect();
        let trace = format!("A{}", key(number));
        blocks.push(json!({ "req": 1, "alloc": trace, "thread": number }));
        traces.insert(trace, json!(list));
    }
    for (text, key) in keys {
        frames.insert(key, json!(text));
    }
    let module = |(path, build_id)| json!({ "path": path, "buildId": build_id, "base": "0" });
    json!({
        "version": 5, "invocation": { "dmdEnvVar": null, "mode": "live" },
        "blockList": blocks, "traceTable": traces, "frameTable": frames,
        "memreport": {
            "version": 1, "modules": modules.into_iter().map(module).collect::<Vec<_>>(),
        },
    })
}

/// Returns the key of a number in a dump: a text without the letter `A`, which traces begin with.
fn key(mut number: usize) -> String {
    const DIGITS: &[u8; 16] = b"BCDEFGHIJKLMNOPQ";
    let mut text = String::new();
    loop {
        text.push(char::from(DIGITS[number % 16]));
        number /= 16;
        if number == 0 {
            return text;
        }
    }
}

/// Passes the contents of all Parquet files below a folder on; none if it does not exist.
fn read_all(
    folder: &Path,
    read: &mut dyn FnMut(&RecordBatch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let named = |error: io::Error| format!("{}: {error}", folder.display());
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(named)?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "parquet") {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    for file in files {
        let named = |error: &dyn Display| format!("{}: {error}", file.display());
        let bytes = fs::read(&file).map_err(|error| named(&error))?;
        for batch in read_parquet(bytes).map_err(|error| named(&error))? {
            read(&batch)?;
        }
    }
    Ok(())
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef, Failure> {
    batch.column_by_name(name).ok_or_else(|| format!("a file lacks the column {name}").into())
}

fn ids(batch: &RecordBatch) -> Result<&arrow_array::Int64Array, Failure> {
    let column = column(batch, "stack_id")?;
    column.as_primitive_opt::<Int64Type>().ok_or_else(|| "stack_id is no number".into())
}

/// Returns the stacks of a batch with their numbers.
fn stacks(batch: &RecordBatch) -> Result<Vec<(i64, Stack)>, Failure> {
    let texts = |name: &str| -> Result<Vec<Vec<Option<String>>>, Failure> {
        let lists = column(batch, name)?.as_list_opt::<i32>().ok_or("a column is no list")?;
        let list = |list: Option<ArrayRef>| -> Option<Vec<Option<String>>> {
            let list = list?;
            let list = list.as_string_opt::<i32>()?;
            Some(list.iter().map(|text| text.map(str::to_owned)).collect())
        };
        Ok(lists.iter().map(|cell| list(cell).unwrap_or_default()).collect())
    };
    let [functions, modules, build_ids] = ["functions", "modules", "build_ids"].map(texts);
    let (functions, modules, build_ids) = (functions?, modules?, build_ids?);
    let offsets = column(batch, "offsets")?.as_list_opt::<i32>().ok_or("a column is no list")?;
    let ids = ids(batch)?;
    let mut stacks = Vec::new();
    for row in 0..batch.num_rows() {
        let offsets = offsets.value(row);
        let offsets = offsets.as_primitive_opt::<Int64Type>().ok_or("offsets are no numbers")?;
        let frame = |at: usize| Frame {
            function: functions[row].get(at).cloned().flatten().unwrap_or_default(),
            module: modules[row].get(at).cloned().flatten(),
            build_id: build_ids[row].get(at).cloned().flatten(),
            offset: (at < offsets.len() && offsets.is_valid(at)).then(|| offsets.value(at)),
        };
        stacks.push((ids.value(row), (0..functions[row].len()).map(frame).collect()));
    }
    Ok(stacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_key_of_its_own() {
        let keys: BTreeSet<String> = (0..5000).map(key).collect();
        assert_eq!(keys.len(), 5000);
        assert!(keys.iter().all(|key| !key.starts_with('A')));
    }
}
