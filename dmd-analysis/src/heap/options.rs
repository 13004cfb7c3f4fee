//! Options for the heap of a dump.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::analysis::Class;

/// Options for the heap of a dump.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HeapOptions {
    /// The elements that stacks consist of.
    pub stacks: StackKind,
    /// The functions that stacks have.
    pub frames: Frames,
    /// The only class of blocks to keep; all if `None`.
    pub only: Option<Class>,
    /// The time of the dump, for formats that contain one. Dumps do not contain it.
    pub taken: Option<SystemTime>,
    /// True if [`Heap::groups`](super::Heap::groups) are apart by age. Formats of viewers have no
    /// ages, so their rows stay together by default.
    pub ages: bool,
    /// True if [`Heap::groups`](super::Heap::groups) are apart by span, where scopes are linked to
    /// spans of traces.
    pub spans: bool,
    /// Labels of each sample of a pprof profile, such as `service_name`, by which stores of
    /// profiles tell processes apart.
    pub labels: Vec<SampleLabel>,
}

/// A label of samples, whose key every store of profiles accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLabel {
    key: String,
    value: String,
}

impl SampleLabel {
    /// Creates a label. Characters other than ASCII's letters, digits and `_` become `_` in its
    /// key, as in Prometheus: `service.name` is `service_name`.
    ///
    /// ```
    /// use memreport_analysis::heap::SampleLabel;
    ///
    /// assert_eq!(SampleLabel::new("service.name", "shop").key(), "service_name");
    /// assert_eq!(SampleLabel::new("1st", "x").key(), "_1st");
    /// ```
    #[must_use]
    pub fn new(key: &str, value: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let start = if key.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let key = start.chars().chain(key.chars()).map(plain).collect();
        SampleLabel { key, value: value.to_owned() }
    }

    /// Returns the labels of a resource, from the values of `OTEL_RESOURCE_ATTRIBUTES` and
    /// `OTEL_SERVICE_NAME`.
    #[must_use]
    pub fn of_resource(attributes: Option<&str>, service: Option<&str>) -> Vec<Self> {
        let pairs = resource_attributes(attributes, service);
        pairs.iter().map(|(key, value)| SampleLabel::new(key, value)).collect()
    }

    /// Returns its key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns its value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Returns the attributes of a resource by name, as OpenTelemetry's two variables state them.
///
/// `attributes` is `OTEL_RESOURCE_ATTRIBUTES`, a list `key=value,…` with percent-encoded values;
/// `service` is `OTEL_SERVICE_NAME`, which has precedence. Defective entries are left out.
///
/// ```
/// use memreport_analysis::heap::resource_attributes;
///
/// let list = "service.name=old, service.version=1.2%2C3 ,broken,=x";
/// let found: Vec<_> = resource_attributes(Some(list), Some("shop")).into_iter().collect();
/// let expected = [("service.name", "shop"), ("service.version", "1.2,3")];
/// assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
/// ```
#[must_use]
pub fn resource_attributes(
    attributes: Option<&str>,
    service: Option<&str>,
) -> BTreeMap<String, String> {
    let entries = attributes.unwrap_or_default().split(',');
    let entries = entries.filter_map(|entry| entry.split_once('='));
    let entries = entries.map(|(key, value)| (key.trim(), percent_decoded(value.trim())));
    let service = service.map(|name| ("service.name", name.to_owned()));
    let is_whole = |(key, value): &(&str, String)| !key.is_empty() && !value.is_empty();
    // A later entry replaces an earlier one.
    let all = entries.chain(service).filter(is_whole);
    all.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Decodes `%20` and the like. Other text stays.
fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The frames that stacks have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frames {
    /// All but the innermost ones of the allocator and of the tracker.
    #[default]
    All,
    /// Frames of the program and of the crates it uses, without the standard library and the frames
    /// outside `main`.
    Own,
}

/// The elements that stacks consist of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackKind {
    /// The functions that were called.
    #[default]
    Native,
    /// The scopes of the program, which Chrome calls a pseudo stack.
    Scopes,
    /// The functions, below the scopes that they were called in.
    ScopesThenNative,
}
