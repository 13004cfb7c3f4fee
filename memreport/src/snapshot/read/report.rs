//! One report as the file has it: fields of any type, or none.

use super::json::{Json, Start};
use super::{ReadError, Sink};
use std::borrow::Cow;
use std::fmt;

/// The value of one field, typed as in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<'a> {
    /// The report has no such field.
    #[default]
    Missing,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as the double nearest to it.
    Number(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An object or array, as JavaScript turns it into a string: `[object Object]`, `1,2`.
    Composite(Cow<'a, str>),
}

impl Field<'_> {
    /// What JavaScript's `if` says of it.
    pub fn is_truthy(&self) -> bool {
        match self {
            Field::Missing | Field::Null => false,
            Field::Bool(value) => *value,
            Field::Number(value) => *value != 0.0 && !value.is_nan(),
            Field::Text(text) => !text.is_empty(),
            Field::Composite(_) => true,
        }
    }

    /// The same, on its own.
    pub fn into_owned(self) -> Field<'static> {
        match self {
            Field::Missing => Field::Missing,
            Field::Null => Field::Null,
            Field::Bool(value) => Field::Bool(value),
            Field::Number(value) => Field::Number(value),
            Field::Text(text) => Field::Text(Cow::Owned(text.into_owned())),
            Field::Composite(text) => Field::Composite(Cow::Owned(text.into_owned())),
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Missing => f.write_str("nothing"),
            Field::Null => f.write_str("null"),
            Field::Bool(value) => write!(f, "{value}"),
            Field::Number(value) => write!(f, "{value}"),
            Field::Text(text) => {
                write!(f, "the string {:?}", text.chars().take(80).collect::<String>())
            }
            Field::Composite(_) => f.write_str("an object or array"),
        }
    }
}

/// One report, lent for as long as it takes to look at it.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Its place in the list, from 0.
    pub index: usize,
    /// The process that was measured; empty or missing for the one that wrote the file.
    pub process: Field<'a>,
    /// Where the measurement belongs.
    pub path: &'a str,
    /// 0, 1 or 2: `NONHEAP`, `HEAP`, `OTHER`.
    pub kind: Field<'a>,
    /// 0, 1, 2 or 3: bytes, a count, a count that never decreases, hundredths of a percent.
    pub units: Field<'a>,
    /// How much.
    pub amount: Field<'a>,
    /// What is measured.
    pub description: Field<'a>,
    /// A mark that Firefox's page honours: 1 and 2 for "only in the first" and "only in the second" of two files.
    pub presence: Field<'a>,
    /// The segments of the path as they are meant, where the path cannot say: with slashes and backslashes of their own.
    pub segments: Option<&'a [String]>,
}

/// Reads the value of a field that is kept.
pub(super) fn field(json: &mut Json<'_>) -> Result<Field<'static>, ReadError> {
    let mut slot = Slot::default();
    slot.read(json)?;
    Ok(slot.lend().into_owned())
}

/// Room for the value of one field, used again for each report.
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
                self.text = in_javascript(&json.value(1)?);
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

/// `String(value)` of an object or array; what stands in it is shown by its own rules there, but numbers and all else
/// that has one plain form are the same.
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

/// Room for one report, used again for each.
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
    /// Reads the next report and gives it to `sink`; answers what is wrong with the report.
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

    /// Segments that are no list of strings are not ours: the path counts.
    fn read_segments(&mut self, json: &mut Json<'_>) -> Result<(), ReadError> {
        let serde_json::Value::Array(items) = json.value(1)? else { return Ok(()) };
        self.segments.clear();
        self.segments.extend(items.iter().filter_map(|item| item.as_str().map(str::to_owned)));
        self.has_segments = self.segments.len() == items.len() && !items.is_empty();
        Ok(())
    }
}
