//! Reads one report with the field types of the file.

use super::field::Field;
use super::json::{Json, Start};
use super::{ReadError, Sink};
use std::borrow::Cow;

/// The most bytes of a field that is an object or an array.
const FIELD_LIMIT: u64 = 64 << 10;

/// One report, borrowed while the sink looks at it.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The index in the list, from 0.
    pub index: usize,
    /// The process that was measured. Empty or missing for the process that wrote the file.
    pub process: Field<'a>,
    /// The path of the measurement.
    pub path: &'a str,
    /// The kind: 0, 1 or 2 for `NONHEAP`, `HEAP` and `OTHER`.
    pub kind: Field<'a>,
    /// The unit: 0, 1, 2 or 3 for bytes, a count, a count that never decreases, hundredths of a
    /// percent.
    pub units: Field<'a>,
    /// The amount.
    pub amount: Field<'a>,
    /// The description of the measurement.
    pub description: Field<'a>,
    /// A mark that Firefox's page shows: 1 for "only in the first" of two files, 2 for "only in the
    /// second".
    pub presence: Field<'a>,
    /// The segments of a path that contain slashes or backslashes of their own.
    pub segments: Option<&'a [String]>,
}

/// The numbers of a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumericEntry<'a> {
    /// The process; empty for the process that wrote the file.
    pub process: &'a str,
    /// The kind, as in [`Entry::kind`].
    pub kind: f64,
    /// The unit, as in [`Entry::units`].
    pub units: f64,
    /// The amount, rounded to a whole number.
    pub amount: i64,
}

impl Entry<'_> {
    /// Returns the numbers of the report.
    ///
    /// Returns `None` if a field is no number, or if the amount is beyond the whole numbers that a
    /// double represents exactly.
    #[must_use]
    pub fn numbers(&self) -> Option<NumericEntry<'_>> {
        let (&Field::Number(kind), &Field::Number(units), &Field::Number(amount)) =
            (&self.kind, &self.units, &self.amount)
        else {
            return None;
        };
        let process = match &self.process {
            Field::Text(name) => name.as_ref(),
            _ => "",
        };
        let is_exact = amount.abs() < 9e15;
        let amount = is_exact.then(|| format!("{amount:.0}").parse().ok())??;
        Some(NumericEntry { process, kind, units, amount })
    }
}

/// Reads the value of a field and returns it.
pub(super) fn field(json: &mut Json<'_>) -> Result<Field<'static>, ReadError> {
    let mut slot = Slot::default();
    slot.read(json)?;
    Ok(slot.lend().into_owned())
}

/// A buffer for the value of one field, reused for each report.
#[derive(Default)]
struct Slot {
    is: Is,
    number: f64,
    text: String,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Is {
    #[default]
    Missing,
    Null,
    False,
    True,
    Number,
    Text,
    Composite,
}

impl Slot {
    fn read(&mut self, json: &mut Json<'_>) -> Result<(), ReadError> {
        self.is = match json.start()? {
            Start::String => {
                json.string(&mut self.text)?;
                Is::Text
            }
            Start::Number => {
                self.number = json.number()?;
                Is::Number
            }
            Start::Word => match json.word()? {
                None => Is::Null,
                Some(false) => Is::False,
                Some(true) => Is::True,
            },
            Start::Object | Start::Array => {
                self.text = in_javascript(&json.small_value(FIELD_LIMIT)?);
                Is::Composite
            }
        };
        Ok(())
    }

    fn lend(&self) -> Field<'_> {
        match self.is {
            Is::Missing => Field::Missing,
            Is::Null => Field::Null,
            Is::False => Field::Bool(false),
            Is::True => Field::Bool(true),
            Is::Number => Field::Number(self.number),
            Is::Text => Field::Text(Cow::Borrowed(&self.text)),
            Is::Composite => Field::Composite(Cow::Borrowed(&self.text)),
        }
    }
}

/// Converts an object or array like JavaScript's `String(value)`. Numbers and other values within
/// it have the same plain form here.
fn in_javascript(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => {
            items.iter().map(in_javascript).collect::<Vec<_>>().join(",")
        }
        serde_json::Value::Object(_) => "[object Object]".into(),
        serde_json::Value::Number(number) => {
            number.as_f64().map_or_else(String::new, |number| number.to_string())
        }
        serde_json::Value::Bool(value) => value.to_string(),
    }
}

/// Buffers for one report, reused for each.
#[derive(Default)]
pub(super) struct Slots {
    process: Slot,
    path: Slot,
    kind: Slot,
    units: Slot,
    amount: Slot,
    description: Slot,
    presence: Slot,
    segments: Vec<String>,
    has_segments: bool,
}

impl Slots {
    /// Reads the next report and passes it to `sink`. Returns the report's defect, if it has one.
    pub(super) fn read(
        &mut self,
        json: &mut Json<'_>,
        key: &mut String,
        index: usize,
        sink: &mut dyn Sink,
    ) -> Result<Option<ReadError>, ReadError> {
        for slot in
            [&mut self.process, &mut self.path, &mut self.kind, &mut self.units, &mut self.amount]
        {
            slot.is = Is::Missing;
        }
        (self.description.is, self.presence.is, self.has_segments) =
            (Is::Missing, Is::Missing, false);
        if json.start()? != Start::Object {
            json.skip(key)?;
            return Ok(Some(ReadError::ReportIsNoObject { index }));
        }
        json.enter();
        let mut first = true;
        while json.next_member(&mut first, b'}')? {
            json.key(key)?;
            match key.as_str() {
                "process" => self.process.read(json)?,
                "path" => self.path.read(json)?,
                "kind" => self.kind.read(json)?,
                "units" => self.units.read(json)?,
                "amount" => self.amount.read(json)?,
                "description" => self.description.read(json)?,
                "_presence" => self.presence.read(json)?,
                "segments" => self.read_segments(json)?,
                _ => json.skip(key)?,
            }
        }
        let Field::Text(path) = self.path.lend() else {
            return Ok(Some(ReadError::ReportWithoutPath {
                index,
                found: self.path.lend().into_owned(),
            }));
        };
        let entry = Entry {
            index,
            process: self.process.lend(),
            path: &path,
            kind: self.kind.lend(),
            units: self.units.lend(),
            amount: self.amount.lend(),
            description: self.description.lend(),
            presence: self.presence.lend(),
            segments: self.has_segments.then_some(&self.segments),
        };
        let fault = sink.report(&entry).err();
        Ok(fault.map(|source| ReadError::Report {
            index,
            path: path.chars().take(200).collect(),
            source,
        }))
    }

    /// Reads the segments. Ignores them if they are not a list of strings: then the path counts.
    fn read_segments(&mut self, json: &mut Json<'_>) -> Result<(), ReadError> {
        let serde_json::Value::Array(items) = json.small_value(FIELD_LIMIT)? else { return Ok(()) };
        self.segments.clear();
        self.segments.extend(items.iter().filter_map(|item| item.as_str().map(str::to_owned)));
        self.has_segments = self.segments.len() == items.len() && !items.is_empty();
        Ok(())
    }
}
