//! Tests of the pprof profile of the example heap, with a decoder.

use std::collections::BTreeMap;
use std::io::Read;

use super::{bytes, dump, heap};
use crate::analysis::Class;
use crate::export::pprof::{Values, write_growth, write_with};
use crate::export::{Format, Heap, HeapOptions};
use crate::heap::SampleLabel;
use crate::read::read_slice;

/// The fields of a message: numbers and bytes by field.
#[derive(Debug, Default)]
pub(super) struct Fields {
    numbers: BTreeMap<u64, Vec<u64>>,
    bytes: BTreeMap<u64, Vec<Vec<u8>>>,
}

impl Fields {
    pub(super) fn decode(mut bytes: &[u8]) -> Self {
        let mut fields = Fields::default();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = varint(&mut bytes);
            if tag & 7 == 0 {
                fields.numbers.entry(tag >> 3).or_default().push(value);
                continue;
            }
            assert_eq!(tag & 7, 2, "only varints and bytes are written");
            let (field, rest) = bytes.split_at(usize::try_from(value).unwrap());
            fields.bytes.entry(tag >> 3).or_default().push(field.to_vec());
            bytes = rest;
        }
        fields
    }

    pub(super) fn number(&self, field: u64) -> u64 {
        self.numbers.get(&field).map_or(0, |numbers| numbers[0])
    }

    pub(super) fn messages(&self, field: u64) -> Vec<Fields> {
        self.bytes.get(&field).into_iter().flatten().map(|bytes| Fields::decode(bytes)).collect()
    }

    pub(super) fn packed(&self, field: u64) -> Vec<u64> {
        let mut bytes = &*self.bytes[&field][0];
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            numbers.push(varint(&mut bytes));
        }
        numbers
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    unreachable!("a number ends")
}

/// A decoded profile.
pub(super) struct Decoded {
    fields: Fields,
    strings: Vec<String>,
}

impl Decoded {
    pub(super) fn new(gzipped: &[u8]) -> Self {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(gzipped).read_to_end(&mut bytes).unwrap();
        let fields = Fields::decode(&bytes);
        let strings: Vec<String> =
            fields.bytes[&6].iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect();
        assert_eq!(strings[0], "");
        Decoded { fields, strings }
    }

    fn string(&self, number: u64) -> &str {
        &self.strings[usize::try_from(number).unwrap()]
    }

    pub(super) fn types(&self) -> Vec<String> {
        let types = self.fields.messages(1);
        types
            .iter()
            .map(|of| format!("{}/{}", self.string(of.number(1)), self.string(of.number(2))))
            .collect()
    }

    /// Returns each sample as a line: functions, labels and values.
    ///
    /// Functions are in the order of the stack, innermost first, with `|` between locations.
    pub(super) fn samples(&self) -> Vec<String> {
        let functions: BTreeMap<u64, Fields> = self
            .fields
            .messages(5)
            .into_iter()
            .map(|function| (function.number(1), function))
            .collect();
        let locations: BTreeMap<u64, Fields> = self
            .fields
            .messages(4)
            .into_iter()
            .map(|location| (location.number(1), location))
            .collect();
        let line = |line: &Fields| {
            let function = &functions[&line.number(1)];
            assert_eq!(function.number(3), 0, "pprof would demangle a system name");
            let (name, file) = (self.string(function.number(2)), self.string(function.number(4)));
            format!("{name} {file}:{}", line.number(2))
        };
        let location = |id: &u64| {
            let location = &locations[id];
            let lines: Vec<String> = location.messages(4).iter().map(line).collect();
            if lines.is_empty() {
                format!("{:#x} in {}", location.number(3), location.number(2))
            } else {
                lines.join(", ")
            }
        };
        let label = |label: &Fields| {
            let text = self.string(label.number(2));
            let unit = self.string(label.number(4));
            let number = label.number(3).to_string();
            format!(
                "{}={}{unit}",
                self.string(label.number(1)),
                if text.is_empty() { &number } else { text }
            )
        };
        let sample = |sample: &Fields| {
            let stack: Vec<String> = sample.packed(1).iter().map(location).collect();
            let labels: Vec<String> = sample.messages(3).iter().map(label).collect();
            let values: Vec<i64> = sample.packed(2).into_iter().map(u64::cast_signed).collect();
            format!("{} [{}] {values:?}", stack.join(" | "), labels.join(" "))
        };
        self.fields.messages(2).iter().map(sample).collect()
    }

    /// Returns the sum of each value.
    pub(super) fn sums(&self) -> Vec<i64> {
        let mut sums = vec![0; self.types().len()];
        for sample in self.fields.messages(2) {
            for (sum, value) in sums.iter_mut().zip(sample.packed(2)) {
                *sum += value.cast_signed();
            }
        }
        sums
    }

    fn default(&self) -> &str {
        self.string(self.fields.number(14))
    }
}

#[test]
fn a_profile_has_inlined_frames_and_labels() {
    let profile = Decoded::new(&bytes(Format::Pprof, &[heap(&dump(), None)]));
    assert_eq!(profile.types(), ["inuse_objects/count", "inuse_space/bytes"]);
    assert_eq!(profile.default(), "inuse_space");
    let expected = [
        "shop::Buffer::grow#1 src/buffer.rs:10 | shop::work src/main.rs:60 [thread=worker (2) reported=twice \
         reporter=explicit/cache field=shop::Cache.entries reporter=explicit/pool bytes=1000000bytes] [3, 3000000]",
        "<String as Clone>::clone /rustc/1/library/alloc/src/string.rs:99, shop::Cache::insert src/cache.rs:33 | shop::main \
         src/main.rs:40 [thread=main (1) reported=once reporter=explicit/cache field=shop::Cache.entries bytes=65536bytes] \
         [20, 1310720]",
        "<alloc::vec::Vec<u8>>::with_capacity /rustc/1/library/alloc/src/vec/mod.rs:500, shop::load src/main.rs:12 | \
         shop::main src/main.rs:40 [thread=main (1) type=[u8] reported=no bytes=4096bytes] [1, 4096]",
        "<[u8; 4] as shop::\"Key\">::store src/key.rs:7 | shop::main src/main.rs:40 [thread=main (1) reported=once \
         reporter=explicit/cache field=shop::Cache.entries bytes=48bytes] [1, 48]",
        "<[u8; 4] as shop::\"Key\">::store src/key.rs:8 | shop::main src/main.rs:40 [thread=main (1) reported=once \
         reporter=explicit/cache field=shop::Cache.entries bytes=32bytes] [1, 32]",
        "0x7f0000001234 in 1 | shop::main src/main.rs:40 [thread=thread 3 reported=no bytes=24bytes] [1, 24]",
        "(no stack was recorded) :0 [reported=no bytes=16bytes] [1, 16]",
    ];
    assert_eq!(profile.samples(), expected);
    // The duration in nanoseconds, and the mean distance of samples, which is one byte.
    assert_eq!((profile.fields.number(10), profile.fields.number(12)), (1_500_000_000, 1));
    let modules = profile.fields.messages(3);
    assert_eq!(modules.len(), 1);
    assert_eq!(modules[0].number(2), 0x7f00_0000_0000);
    assert_eq!(profile.string(modules[0].number(5)), "/usr/lib/gone.so");
    assert_eq!(profile.string(modules[0].number(6)), "abcd");
}

#[test]
fn a_cumulative_dump_has_allocated_and_live_blocks() {
    let text = r##"{"version":5,"invocation":{"dmdEnvVar":null,"mode":"cumulative"},"memreport":{"version":1},
        "blockList":[{"req":10,"num":5,"alloc":"A","freed":true},{"req":10,"num":2,"alloc":"A"}],
        "traceTable":{"A":["a"]},"frameTable":{"a":"#00: a (a.rs:1)"}}"##;
    let values = |text: &str, opens_on| {
        let dump = read_slice(text.as_bytes()).unwrap();
        let mut out = Vec::new();
        write_with(&Heap::new(&dump, &HeapOptions::default()).unwrap(), opens_on, &mut out)
            .unwrap();
        let profile = Decoded::new(&out);
        (profile.types().join(" "), profile.sums(), profile.default().to_owned())
    };
    let types = "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes";
    assert_eq!(
        values(text, Values::Live),
        (types.into(), vec![7, 70, 2, 20], "inuse_space".into())
    );
    assert_eq!(
        values(text, Values::Allocated),
        (types.into(), vec![7, 70, 2, 20], "alloc_space".into())
    );
    // Firefox's dumps do not contain which blocks are live.
    let firefox = text.replace(r#""memreport":{"version":1},"#, "");
    let types = "alloc_objects/count alloc_space/bytes";
    assert_eq!(values(&firefox, Values::Live), (types.into(), vec![7, 70], "alloc_space".into()));
}

#[test]
fn growth_is_the_second_heap_without_the_first() {
    let (all, dark) = (heap(&dump(), None), heap(&dump(), Some(Class::Unreported)));
    let growth = |first: &Heap, second: &Heap| {
        let mut out = Vec::new();
        write_growth(first, second, Values::Live, &mut out).unwrap();
        Decoded::new(&out)
    };
    assert_eq!(growth(&all, &all).samples(), [""; 0]);
    assert_eq!(growth(&dark, &all).sums(), [25, 4_310_800]);
    let shrunk = growth(&all, &dark);
    assert_eq!(shrunk.sums(), [-25, -4_310_800]);
    assert_eq!(shrunk.samples().len(), 4);
}

#[test]
fn samples_have_the_labels_of_stores_and_the_ids_of_spans() {
    let text = crate::heap::tests::scoped().replacen(
        r#""heapAllocated""#,
        r#""spans":[[2,"0af7651916cd43dd8448eb211c80319c","00ad6b7169203331"]],"heapAllocated""#,
        1,
    );
    let dump = read_slice(text.as_bytes()).unwrap();
    let labels = vec![SampleLabel::new("service.name", "shop")];
    let of = |spans| {
        let options = HeapOptions { labels: labels.clone(), spans, ..HeapOptions::default() };
        let decoded = Decoded::new(&bytes(Format::Pprof, &[Heap::new(&dump, &options).unwrap()]));
        (decoded.samples(), decoded.sums())
    };
    let (samples, sums) = of(true);
    assert!(samples.iter().all(|sample| sample.contains("service_name=shop ")), "{samples:?}");
    let ids = "trace_id=0af7651916cd43dd8448eb211c80319c span_id=00ad6b7169203331";
    let in_span: Vec<_> = samples.iter().filter(|sample| sample.contains(ids)).collect();
    assert!(!in_span.is_empty());
    assert!(in_span.iter().all(|sample| sample.contains("scope=request > search")));
    let (without, sums_without) = of(false);
    assert!(without.iter().all(|sample| !sample.contains("_id=")));
    assert_eq!(sums, sums_without);
}
