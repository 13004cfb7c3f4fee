//! A profile as a protocol buffer, gzipped.

use std::io::{self, Write};
use std::time::UNIX_EPOCH;

use flate2::{Compression, GzBuilder};

use super::Values;
use super::profile::{Function, Key, Label, Line, Location, Profile};
use super::wire::Message;
use crate::heap::table::Table;
use crate::heap::{Amounts, Heap};

/// A type of values.
struct ValueType {
    name: &'static str,
    unit: &'static str,
    /// The place among the values of a key.
    place: usize,
}

impl Profile {
    /// Writes the profile.
    pub(super) fn write(mut self, heap: &Heap, out: &mut dyn Write) -> io::Result<()> {
        let mut profile = Message::default();
        let types = self.types();
        for ValueType { name, unit, .. } in types {
            profile.message(1, &self.value_type(name, unit));
        }
        for (key, values) in self.keys.values().iter().zip(&self.values) {
            // A sample without growth is left out.
            if values.iter().any(|value| *value != 0) {
                let values = types.iter().map(|value| values[value.place].cast_unsigned());
                profile.message(2, &sample(key, &self.stacks, values, &mut self.strings));
            }
        }
        self.write_modules(heap, &mut profile);
        self.write_locations(heap, &mut profile);
        for (number, &Function { name, file }) in (1..).zip(self.functions.values()) {
            // No `system_name`: pprof would demangle it again, and remove the text between angle
            // brackets.
            let mut function = Message::default();
            function.number(1, number).number(2, name.into()).number(4, file.into());
            profile.message(5, &function);
        }
        self.write_rest(heap, &mut profile);
        let mut gzip = GzBuilder::new().write(out, Compression::default());
        gzip.write_all(&profile.into_bytes())?;
        gzip.finish()?.flush()
    }

    /// Returns the types of values that the heap contains.
    fn types(&self) -> &'static [ValueType] {
        const TYPES: [ValueType; 4] = [
            ValueType { name: "alloc_objects", unit: "count", place: 0 },
            ValueType { name: "alloc_space", unit: "bytes", place: 1 },
            ValueType { name: "inuse_objects", unit: "count", place: 2 },
            ValueType { name: "inuse_space", unit: "bytes", place: 3 },
        ];
        match self.amounts {
            Amounts::Both => &TYPES,
            Amounts::Allocated => &TYPES[..2],
            Amounts::Live => &TYPES[2..],
        }
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut message = Message::default();
        let [name, unit] = [name, unit].map(|text| self.strings.number(text.to_owned()).into());
        message.number(1, name).number(2, unit);
        message
    }

    /// Writes the modules of addresses that are not symbolicated: pprof may be able to.
    fn write_modules(&mut self, heap: &Heap, profile: &mut Message) {
        let modules = self.modules.values().to_vec();
        for (number, path) in (0_u32..).zip(modules) {
            let (base, build_id) = (heap.load_bias(&path), heap.build_id(&path));
            let end = self.ends.get(&number).copied().unwrap_or(0);
            let [path, build_id] =
                [path, build_id.to_owned()].map(|text| self.strings.number(text));
            let mut mapping = Message::default();
            mapping.number(1, u64::from(number) + 1).number(2, base);
            mapping.number(3, base.saturating_add(end).saturating_add(1));
            mapping.number(5, path.into()).number(6, build_id.into());
            profile.message(3, &mapping);
        }
    }

    fn write_locations(&self, heap: &Heap, profile: &mut Message) {
        for (number, location) in (1..).zip(self.locations.values()) {
            let mut message = Message::default();
            message.number(1, number);
            match location {
                Location::Address { module, offset } => {
                    let path = &self.modules.values()[*module as usize];
                    let address = heap.load_bias(path).saturating_add(*offset);
                    message.number(2, u64::from(*module) + 1).number(3, address);
                }
                Location::Lines(lines) => {
                    for &Line { function, line } in lines {
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
        let default = match (self.amounts, self.opens_on) {
            (Amounts::Live, _) | (Amounts::Both, Values::Live) => "inuse_space",
            _ => "alloc_space",
        };
        profile.number(14, self.strings.number(default.to_owned()).into());
        // Strings come last: everything before adds to them.
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
    for &Label { key, value } in &key.labels {
        let mut label = Message::default();
        label.number(1, key.into()).number(2, value.into());
        sample.message(3, &label);
    }
    let bytes = strings.number("bytes".to_owned()).into();
    let mut label = Message::default();
    label.number(1, bytes).number(3, key.size).number(4, bytes);
    sample.message(3, &label);
    sample
}
