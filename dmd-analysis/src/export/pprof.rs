//! The profile of `go tool pprof` (profile.proto, gzipped): samples with labels for thread, scope, type and who reports them.
//!
//! Values are those of all blocks: what is sampled has been extrapolated, and no reader scales a profile of this form again.

mod wire;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::UNIX_EPOCH;

use flate2::{Compression, GzBuilder};
use rustc_hash::FxHashMap;

use crate::analysis::{Class, Totals};
use crate::heap::table::Table;
use crate::heap::{Heap, HeapFrame, Knows, Row};
use wire::Message;

/// Writes the profile. `go tool pprof` opens it on what lives, if that is known.
///
/// # Errors
///
/// If writing fails.
pub fn write(heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
    write_with(heap, Values::Live, out)
}

/// Which values a viewer opens the profile on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// What lives.
    Live,
    /// What was allocated since tracking began.
    Allocated,
}

/// Writes the profile, to be opened on these values if it has them.
///
/// # Errors
///
/// If writing fails.
pub fn write_with(heap: &Heap, opens_on: Values, out: &mut dyn Write) -> io::Result<()> {
    let mut profile = Profile::new(heap, opens_on);
    heap.rows.iter().for_each(|row| profile.sample(heap, row, 1));
    profile.write(heap, out)
}

/// Writes what `second` has beyond `first`, as `go tool pprof` would subtract them. Negative values are what went away.
///
/// # Errors
///
/// If writing fails.
pub fn write_growth(
    first: &Heap,
    second: &Heap,
    opens_on: Values,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut profile = Profile::new(second, opens_on);
    second.rows.iter().for_each(|row| profile.sample(second, row, 1));
    first.rows.iter().for_each(|row| profile.sample(first, row, -1));
    profile.write(second, out)
}

/// What identifies a location: functions at one address, innermost first, or the address itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Location {
    /// Functions and lines.
    Lines(Box<[(u32, u32)]>),
    /// The number of a module, and an offset in it.
    Address(u32, u64),
}

/// What identifies a sample. Those of two dumps that are equal are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    /// The number of the list of locations.
    stack: u32,
    /// Key and value of each text label.
    labels: Vec<(u32, u32)>,
    size: u64,
}

/// A profile under construction.
struct Profile {
    knows: Knows,
    opens_on: Values,
    strings: Table<String>,
    /// Name and file.
    functions: Table<(u32, u32)>,
    locations: Table<Location>,
    /// Lists of locations, innermost first.
    stacks: Table<Box<[u32]>>,
    /// Which of them the heap's stacks are, once they were met. A heap is told by its address.
    known: FxHashMap<(usize, u32), u32>,
    modules: Table<String>,
    /// The furthest offset that was met in each module.
    ends: BTreeMap<u32, u64>,
    keys: Table<Key>,
    /// Values by the number of the key: allocated blocks and bytes, live blocks and bytes.
    values: Vec<[i64; 4]>,
}

impl Profile {
    fn new(heap: &Heap, opens_on: Values) -> Self {
        let mut strings = Table::default();
        // The first string is the empty one.
        strings.number(String::new());
        Self {
            knows: heap.knows,
            opens_on,
            strings,
            functions: Table::default(),
            locations: Table::default(),
            stacks: Table::default(),
            known: FxHashMap::default(),
            modules: Table::default(),
            ends: BTreeMap::new(),
            keys: Table::default(),
            values: Vec::new(),
        }
    }

    fn sample(&mut self, heap: &Heap, row: &Row, sign: i64) {
        let place = (std::ptr::from_ref(heap).addr(), row.kind.stack);
        let stack = match self.known.get(&place) {
            Some(stack) => *stack,
            None => {
                let locations = self.stack(heap, row.kind.stack);
                let stack = self.stacks.number(locations);
                self.known.insert(place, stack);
                stack
            }
        };
        let labels = self.labels(heap, row);
        let key = Key { stack, labels, size: row.kind.size };
        let at = self.keys.number(key) as usize;
        if at == self.values.len() {
            self.values.push([0; 4]);
        }
        let numbers = |totals: &Totals| [totals.blocks, totals.usable()];
        let [live, allocated] = [numbers(&row.live), numbers(&row.allocated)];
        for (value, number) in self.values[at].iter_mut().zip(allocated.into_iter().chain(live)) {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            *value = value.saturating_add(number.saturating_mul(sign));
        }
    }

    /// The locations of a stack, innermost first. Functions that were inlined are in one location with the one around them.
    fn stack(&mut self, heap: &Heap, stack: u32) -> Box<[u32]> {
        let mut locations = Vec::new();
        let mut lines: Vec<(u32, u32)> = Vec::new();
        for frame in heap.stack(stack) {
            if let Some((module, offset)) = &frame.address {
                let module = self.modules.number(module.clone());
                let end = self.ends.entry(module).or_default();
                *end = (*end).max(*offset);
                locations.push(self.locations.number(Location::Address(module, *offset)));
                continue;
            }
            lines.push((self.function(frame), frame.line.unwrap_or(0)));
            if !frame.inlined {
                let lines = Location::Lines(std::mem::take(&mut lines).into());
                locations.push(self.locations.number(lines));
            }
        }
        if !lines.is_empty() {
            locations.push(self.locations.number(Location::Lines(lines.into())));
        }
        locations.into()
    }

    fn function(&mut self, frame: &HeapFrame) -> u32 {
        let name = self.strings.number(frame.function.clone());
        let file = self.strings.number(frame.file.clone().unwrap_or_default());
        self.functions.number((name, file))
    }

    fn labels(&mut self, heap: &Heap, row: &Row) -> Vec<(u32, u32)> {
        let kind = &row.kind;
        let reported = match kind.class {
            Class::Unreported => Some("no"),
            Class::OnceReported => Some("once"),
            Class::TwiceReported => Some("twice"),
            Class::Live | Class::Cumulative => None,
        };
        let text = |id: Option<u32>| id.map(|id| heap.text(id));
        let scope = heap.scope(kind.scope);
        let single = [
            ("thread", text(kind.thread)),
            ("scope", scope.as_deref()),
            ("type", text(kind.block_type)),
            ("reported", reported),
        ];
        let reports = kind.reports.iter().flat_map(|(path, field)| {
            [("reporter", Some(heap.text(*path))), ("field", text(*field))]
        });
        let mut label = |(key, value): (&str, Option<&str>)| {
            let value = value?;
            Some((self.strings.number(key.to_owned()), self.strings.number(value.to_owned())))
        };
        single.into_iter().chain(reports).filter_map(&mut label).collect()
    }

    fn write(mut self, heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
        let mut profile = Message::default();
        let types = self.types();
        for (name, unit, _) in &types {
            profile.message(1, &self.value_type(name, unit));
        }
        for (key, values) in self.keys.values().iter().zip(&self.values) {
            // What grew by nothing is not worth a sample.
            if values.iter().any(|value| *value != 0) {
                let values = types.iter().map(|(_, _, at)| values[*at].cast_unsigned());
                profile.message(2, &sample(key, &self.stacks, values, &mut self.strings));
            }
        }
        self.write_modules(heap, &mut profile);
        self.write_locations(heap, &mut profile);
        for (number, &(name, file)) in (1..).zip(self.functions.values()) {
            // No `system_name`: pprof would demangle it once more, and lose what stands between angle brackets.
            let mut function = Message::default();
            function.number(1, number).number(2, name.into()).number(4, file.into());
            profile.message(5, &function);
        }
        self.write_rest(heap, &mut profile);
        let mut gzip = GzBuilder::new().write(out, Compression::default());
        gzip.write_all(&profile.into_bytes())?;
        gzip.finish()?.flush()
    }

    /// Name, unit and place among the values of each type that is known.
    fn types(&self) -> Vec<(&'static str, &'static str, usize)> {
        const TYPES: [(&str, &str, usize); 4] = [
            ("alloc_objects", "count", 0),
            ("alloc_space", "bytes", 1),
            ("inuse_objects", "count", 2),
            ("inuse_space", "bytes", 3),
        ];
        match self.knows {
            Knows::Both => TYPES.to_vec(),
            Knows::Allocated => TYPES[..2].to_vec(),
            Knows::Live => TYPES[2..].to_vec(),
        }
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        let [name, unit] = [name, unit].map(|text| self.strings.number(text.to_owned()).into());
        message.number(1, name).number(2, unit);
        message
    }

    /// Modules in which addresses could not be looked up: pprof may be able to.
    fn write_modules(&mut self, heap: &Heap, profile: &mut Message) {
        let modules = self.modules.values().to_vec();
        for (number, path) in (0_u32..).zip(modules) {
            let (base, build_id) = heap.module(&path);
            let end = self.ends.get(&number).copied().unwrap_or(0);
            let [path, build_id] =
                [path, build_id.to_owned()].map(|text| self.strings.number(text));
            let mut mapping = Message::default();
            mapping.number(1, u64::from(number) + 1).number(2, base);
            mapping.number(3, base.saturating_add(end) + 1);
            mapping.number(5, path.into()).number(6, build_id.into());
            profile.message(3, &mapping);
        }
    }

    fn write_locations(&self, heap: &Heap, profile: &mut Message) {
        for (number, location) in (1..).zip(self.locations.values()) {
            let mut message = Message::default();
            message.number(1, number);
            match location {
                Location::Address(module, offset) => {
                    let path = &self.modules.values()[*module as usize];
                    let address = heap.module(path).0.saturating_add(*offset);
                    message.number(2, u64::from(*module) + 1).number(3, address);
                }
                Location::Lines(lines) => {
                    for &(function, line) in lines {
                        let mut of_line = Message::default();
                        of_line.number(1, u64::from(function) + 1).number(2, line.into());
                        message.message(4, &of_line);
                    }
                }
            }
            profile.message(4, &message);
        }
    }

    fn write_rest(&mut self, heap: &Heap, profile: &mut Message) {
        let nanos = |taken: std::time::SystemTime| taken.duration_since(UNIX_EPOCH).ok();
        let taken = heap.taken.and_then(nanos).map_or(0, |time| time.as_nanos());
        profile.signed(9, i64::try_from(taken).unwrap_or(0));
        profile.number(10, heap.process.uptime_ms.saturating_mul(1_000_000));
        let period_type = self.value_type("space", "bytes");
        profile.message(11, &period_type);
        profile.number(12, heap.sample_bytes.unwrap_or(1).max(1));
        let comment = match heap.sample_bytes {
            Some(0) => format!(
                "{}: estimated from a sample of blocks; the values are those of all blocks",
                heap.process.name()
            ),
            Some(bytes) => format!(
                "{}: estimated from a sample of one byte in {bytes}; the values are those of all blocks",
                heap.process.name()
            ),
            None => format!("{}: all blocks, slop included", heap.process.name()),
        };
        profile.number(13, self.strings.number(comment).into());
        let default = match (self.knows, self.opens_on) {
            (Knows::Live, _) | (Knows::Both, Values::Live) => "inuse_space",
            _ => "alloc_space",
        };
        profile.number(14, self.strings.number(default.to_owned()).into());
        // Last: until here strings are added.
        for string in self.strings.values() {
            profile.bytes(6, string.as_bytes());
        }
    }
}

fn sample(
    key: &Key,
    stacks: &Table<Box<[u32]>>,
    values: impl Iterator<Item = u64>,
    strings: &mut Table<String>,
) -> Message {
    let mut sample = Message::default();
    let locations = &stacks.values()[key.stack as usize];
    sample.packed(1, locations.iter().map(|&location| u64::from(location) + 1));
    sample.packed(2, values);
    for &(name, value) in &key.labels {
        let mut label = Message::default();
        label.number(1, name.into()).number(2, value.into());
        sample.message(3, &label);
    }
    let bytes = strings.number("bytes".to_owned()).into();
    let mut label = Message::default();
    label.number(1, bytes).number(3, key.size).number(4, bytes);
    sample.message(3, &label);
    sample
}
