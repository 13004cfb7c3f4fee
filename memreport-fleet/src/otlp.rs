//! Heaps as profiles of OpenTelemetry (`opentelemetry.proto.profiles.v1development`).
//!
//! Each heap is a resource with a profile for each kind of amount: `inuse_space` and
//! `inuse_objects` for live blocks, `alloc_space` and `alloc_objects` where the dump counts
//! allocations too. Type, scope, thread and reports are attributes of samples. A sample of blocks
//! from a span of a trace has a link to it.

use std::collections::HashMap;
use std::hash::Hash;

use memreport_analysis::analysis::Totals;
use memreport_analysis::export::Heap;
use memreport_analysis::heap::{Group, GroupFrame};
use memreport_analysis::read::SpanIds;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AttributeValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use opentelemetry_proto::tonic::resource::v1;
use prost::Message;

use crate::resource::Resource;

/// The tables that all profiles of a message share. Index 0 of each stands for nothing.
#[derive(Debug, Default)]
pub struct Profiles {
    resources: Vec<otlp::ResourceProfiles>,
    strings: Index<String>,
    functions: Index<otlp::Function>,
    mappings: Index<otlp::Mapping>,
    locations: Index<Place>,
    attributes: Index<Attribute>,
    spans: Index<Option<SpanIds>>,
    stacks: Index<Vec<i32>>,
}

/// Values and their numbers, from 1 on.
#[derive(Debug)]
struct Index<T> {
    values: Vec<T>,
    numbers: HashMap<T, i32>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Index { values: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Index<T> {
    fn number(&mut self, value: T) -> i32 {
        let next = i32::try_from(self.values.len() + 1).unwrap_or(i32::MAX);
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }

    /// Returns the values, after an entry that stands for nothing.
    fn into_table(self, nothing: T) -> Vec<T> {
        [nothing].into_iter().chain(self.values).collect()
    }
}

/// The functions at one address, innermost first, or the address itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Place {
    mapping: i32,
    address: u64,
    /// Functions and their lines.
    lines: Vec<(i32, i64)>,
}

/// An attribute of samples or mappings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Attribute {
    key: i32,
    text: Option<String>,
    number: Option<i64>,
    unit: i32,
}

/// An amount of groups of blocks, as a profile has it.
struct Amount {
    name: &'static str,
    unit: &'static str,
    of: fn(&Group<'_>) -> Option<i128>,
}

const AMOUNTS: [Amount; 4] = [
    Amount { name: "inuse_space", unit: "bytes", of: |group| Some(group.live?.usable()) },
    Amount { name: "inuse_objects", unit: "count", of: |group| Some(group.live?.blocks) },
    Amount {
        name: "alloc_space",
        unit: "bytes",
        of: |group| group.allocated.as_ref().map(Totals::usable),
    },
    Amount { name: "alloc_objects", unit: "count", of: |group| Some(group.allocated?.blocks) },
];

impl Profiles {
    /// Adds the profiles of a heap.
    pub fn add(&mut self, heap: &Heap, resource: &Resource, time_ms: u64) {
        let groups: Vec<Group<'_>> = heap.groups().collect();
        let kinds: Vec<Kind> = groups.iter().map(|group| self.kind(heap, group)).collect();
        let mut profiles = Vec::new();
        for Amount { name, unit, of } in AMOUNTS {
            // Rows of one stack and one list of attributes are one sample.
            let mut sums: HashMap<&Kind, i64> = HashMap::new();
            let mut order = Vec::new();
            for (group, kind) in groups.iter().zip(&kinds) {
                let Some(amount) = of(group).filter(|amount| *amount != 0) else { continue };
                let sum = sums.entry(kind).or_insert_with(|| {
                    order.push(kind);
                    0
                });
                *sum = sum.saturating_add(i64::try_from(amount).unwrap_or(i64::MAX));
            }
            if order.is_empty() {
                continue;
            }
            let sample = |kind: &&Kind| otlp::Sample {
                stack_index: kind.stack,
                attribute_indices: kind.attributes.clone(),
                link_index: kind.link,
                values: vec![sums[*kind]],
                ..otlp::Sample::default()
            };
            let samples = order.iter().map(sample).collect();
            profiles.push(self.profile(heap, [name, unit], samples, time_ms));
        }
        let attributes = resource.iter().map(|(key, value)| key_value(key, value)).collect();
        let scope = InstrumentationScope {
            name: "memreport".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        self.resources.push(otlp::ResourceProfiles {
            resource: Some(v1::Resource { attributes, ..v1::Resource::default() }),
            scope_profiles: vec![otlp::ScopeProfiles {
                scope: Some(scope),
                profiles,
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        });
    }

    fn profile(
        &mut self,
        heap: &Heap,
        [name, unit]: [&str; 2],
        samples: Vec<otlp::Sample>,
        time_ms: u64,
    ) -> otlp::Profile {
        let mut value_type = |name: &str, unit: &str| otlp::ValueType {
            type_strindex: self.strings.number(name.to_owned()),
            unit_strindex: self.strings.number(unit.to_owned()),
        };
        otlp::Profile {
            sample_type: Some(value_type(name, unit)),
            samples,
            time_unix_nano: time_ms.saturating_mul(1_000_000),
            duration_nano: heap.uptime_ms().saturating_mul(1_000_000),
            period_type: Some(value_type("space", "bytes")),
            period: i64::try_from(heap.sample_bytes().unwrap_or(1).max(1)).unwrap_or(i64::MAX),
            profile_id: profile_id(heap, name, time_ms),
            ..otlp::Profile::default()
        }
    }

    /// Returns what makes the sample of a group.
    fn kind(&mut self, heap: &Heap, group: &Group<'_>) -> Kind {
        let frames: Vec<GroupFrame<'_>> = heap.stack_frames(group.stack).collect();
        let stack = self.stack(&frames);
        let reporters = (!group.reporters.is_empty()).then(|| group.reporters.join(" and "));
        let texts = [
            ("memreport.type", group.block_type.map(str::to_owned)),
            ("memreport.scope", group.scope.clone()),
            ("thread.name", group.thread.map(str::to_owned)),
            ("memreport.reported", Some(group.state.name().to_owned())),
            ("memreport.reporters", reporters),
        ];
        let mut attributes = Vec::new();
        for (key, text) in texts {
            let Some(text) = text else { continue };
            let key = self.strings.number(key.to_owned());
            let text = Some(text);
            attributes.push(self.attributes.number(Attribute { key, text, number: None, unit: 0 }));
        }
        let key = self.strings.number("memreport.block.size".to_owned());
        let unit = self.strings.number("bytes".to_owned());
        let number = i64::try_from(group.size).ok();
        attributes.push(self.attributes.number(Attribute { key, text: None, number, unit }));
        let link = group.span.map_or(0, |span| self.spans.number(Some(span)));
        Kind { stack, attributes, link }
    }

    /// Returns the number of a stack. Inlined functions share the location of their caller.
    fn stack(&mut self, frames: &[GroupFrame<'_>]) -> i32 {
        let (mut places, mut lines) = (Vec::new(), Vec::new());
        for frame in frames {
            if let (Some(module), Some(address)) = (frame.module, frame.offset) {
                let mapping = self.mapping(module, frame.build_id);
                places.push(self.locations.number(Place { mapping, address, lines: Vec::new() }));
                continue;
            }
            let function = otlp::Function {
                name_strindex: self.strings.number(frame.function.to_owned()),
                filename_strindex: frame
                    .file
                    .map_or(0, |file| self.strings.number(file.to_owned())),
                ..otlp::Function::default()
            };
            let line = frame.line.map_or(0, i64::from);
            lines.push((self.functions.number(function), line));
            if !frame.is_inlined {
                let lines = std::mem::take(&mut lines);
                places.push(self.locations.number(Place { mapping: 0, address: 0, lines }));
            }
        }
        if !lines.is_empty() {
            places.push(self.locations.number(Place { mapping: 0, address: 0, lines }));
        }
        self.stacks.number(places)
    }

    fn mapping(&mut self, module: &str, build_id: Option<&str>) -> i32 {
        let key = self.strings.number("process.executable.build_id.gnu".to_owned());
        let attribute =
            |text: &str| Attribute { key, text: Some(text.to_owned()), number: None, unit: 0 };
        let attributes = &mut self.attributes;
        let build_id = build_id.map(|id| attributes.number(attribute(id)));
        let filename_strindex = self.strings.number(module.to_owned());
        self.mappings.number(otlp::Mapping {
            filename_strindex,
            attribute_indices: build_id.into_iter().collect(),
            ..otlp::Mapping::default()
        })
    }

    /// Returns the message `ProfilesData` with all profiles.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        let location = |Place { mapping, address, lines }: Place| otlp::Location {
            mapping_index: mapping,
            address,
            lines: lines
                .into_iter()
                .map(|(function_index, line)| otlp::Line { function_index, line, column: 0 })
                .collect(),
            attribute_indices: Vec::new(),
        };
        let attribute = |Attribute { key, text, number, unit }: Attribute| {
            let value = match (text, number) {
                (Some(text), _) => Some(AttributeValue::StringValue(text)),
                (None, number) => number.map(AttributeValue::IntValue),
            };
            let value = value.map(|value| AnyValue { value: Some(value) });
            otlp::KeyValueAndUnit { key_strindex: key, value, unit_strindex: unit }
        };
        let link = |span: Option<SpanIds>| {
            span.map_or_else(otlp::Link::default, |SpanIds { trace, span }| otlp::Link {
                trace_id: trace.to_vec(),
                span_id: span.to_vec(),
            })
        };
        let stack = |location_indices| otlp::Stack { location_indices };
        let dictionary = otlp::ProfilesDictionary {
            mapping_table: self.mappings.into_table(otlp::Mapping::default()),
            location_table: self
                .locations
                .into_table(Place::default())
                .into_iter()
                .map(location)
                .collect(),
            function_table: self.functions.into_table(otlp::Function::default()),
            link_table: self.spans.into_table(None).into_iter().map(link).collect(),
            string_table: self.strings.into_table(String::new()),
            attribute_table: self
                .attributes
                .into_table(Attribute::default())
                .into_iter()
                .map(attribute)
                .collect(),
            stack_table: self.stacks.into_table(Vec::new()).into_iter().map(stack).collect(),
        };
        let data =
            otlp::ProfilesData { resource_profiles: self.resources, dictionary: Some(dictionary) };
        data.encode_to_vec()
    }
}

/// The properties that groups of one sample share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    stack: i32,
    attributes: Vec<i32>,
    /// The number of the span, or 0.
    link: i32,
}

/// Returns the 16 bytes that identify a profile: the same for the same process, moment and amount.
fn profile_id(heap: &Heap, name: &str, time_ms: u64) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let text = format!("{}\n{}\n{}\n{name}", heap.program(), heap.pid(), time_ms);
    Sha256::digest(text)[..16].to_vec()
}

fn key_value(key: &str, value: &str) -> KeyValue {
    let value = AttributeValue::StringValue(value.to_owned());
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
