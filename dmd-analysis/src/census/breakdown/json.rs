//! Breakdowns in JSON, in SpiderMonkey's form: `{"by":"allocationStack","then":{"by":"count"}}`.

use std::num::NonZeroU32;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::{Breakdown, BreakdownError, Bucket, Count, Split, StateSplit, json_name, missing_name};
use crate::axis::{Axis, DEFAULT_EDGES, ReportState, StackCut};

/// A kind of breakdown in JSON.
struct Form {
    /// The value of `by`.
    by: &'static str,
    /// The properties that may stand beside `by`.
    properties: &'static [&'static str],
}

const fn form(by: &'static str, properties: &'static [&'static str]) -> Form {
    Form { by, properties }
}

/// Every kind of breakdown.
const FORMS: [Form; 16] = [
    form("count", &["count", "bytes", "slop", "label"]),
    form("bucket", &["limit"]),
    form("coarseType", &ReportState::NAMES),
    form("allocationStack", &["then", "noStack", "depth", "invert"]),
    form("type", &["then", "other"]),
    // SpiderMonkey's word for the type of an object.
    form("objectClass", &["then", "other"]),
    form("filename", &["then", "noFilename"]),
    form("reporter", &["then", "noReporter", "depth"]),
    form("field", &["then", "noField"]),
    form("thread", &["then", "unknown"]),
    form("scope", &["then", "noScope"]),
    form("crate", &["then", "unknown"]),
    form("sizeClass", &["then"]),
    form("age", &["edges", "then", "unknown"]),
    form("site", &["then", "noStack"]),
    form("size", &["then"]),
];

/// Kinds of SpiderMonkey's breakdowns without a counterpart, with the reason.
const REFUSED: [(&str, &str); 2] = [
    (
        "internalType",
        "it is the type that SpiderMonkey itself gives a thing; a block has one type, which `type` groups by",
    ),
    (
        "descriptiveType",
        "it is a description that the embedder gives a thing; paths describe blocks, and `reporter` groups by them",
    ),
];

/// SpiderMonkey's coarse types without a counterpart.
const REFUSED_STATES: [&str; 4] = ["objects", "scripts", "strings", "domNode"];

const NO_SUCH_STATE: &str = "it is a kind of JavaScript things; the coarse types of blocks are unreported, once, twice, other";

impl FromStr for Breakdown {
    type Err = BreakdownError;

    /// Reads a breakdown in JSON. A breakdown that is left out is a count.
    fn from_str(text: &str) -> Result<Self, BreakdownError> {
        parse(&serde_json::from_str(text).map_err(BreakdownError::Json)?, "")
    }
}

fn parse(value: &Value, place: &str) -> Result<Breakdown, BreakdownError> {
    match value {
        Value::Array(list) => {
            let one = |(at, value): (usize, &Value)| parse(value, &inner(place, &at.to_string()));
            let list: Result<Vec<_>, _> = list.iter().enumerate().map(one).collect();
            list.map(Breakdown::Several)
        }
        Value::Object(fields) => Object { fields, place }.parse(),
        _ => Err(shape(place, "an object with `by`, or an array of such objects")),
    }
}

fn inner(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn shape(place: &str, wanted: &'static str) -> BreakdownError {
    BreakdownError::Shape { place: place.to_owned(), wanted }
}

/// A part of a breakdown.
struct Object<'v> {
    fields: &'v Map<String, Value>,
    /// The path from the top, such as `then.noStack`.
    place: &'v str,
}

impl Object<'_> {
    fn parse(&self) -> Result<Breakdown, BreakdownError> {
        let by = match self.fields.get("by") {
            Some(Value::String(by)) => by.as_str(),
            Some(_) => return Err(shape(&inner(self.place, "by"), "a text")),
            None => return Err(shape(self.place, "an object with `by`")),
        };
        let refused = REFUSED.iter().find(|(name, _)| *name == by);
        if let Some((name, reason)) = refused {
            return Err(self.refused((*name).to_owned(), reason));
        }
        let Some(form) = FORMS.iter().find(|form| form.by == by) else {
            let known = FORMS.iter().map(|form| form.by).collect();
            return Err(BreakdownError::Name { place: self.place.into(), name: by.into(), known });
        };
        let known = form.properties;
        let mut names = self.fields.keys().filter(|name| *name != "by");
        if let Some(name) = names.find(|name| !known.contains(&name.as_str())) {
            if by == "coarseType" && REFUSED_STATES.contains(&name.as_str()) {
                return Err(self.refused(name.clone(), NO_SUCH_STATE));
            }
            return Err(BreakdownError::Property {
                place: self.place.into(),
                by: by.into(),
                name: name.clone(),
                known,
            });
        }
        match by {
            "count" => self.count(),
            "bucket" => {
                let limit = self.number("limit")?;
                Ok(limit.map_or_else(Bucket::default, |limit| Bucket { limit }).into())
            }
            "coarseType" => {
                let [unreported, once, twice, other] =
                    ReportState::NAMES.map(|name| self.child(name));
                Ok(StateSplit { of: [unreported?, once?, twice?, other?] }.into())
            }
            _ => self.split(by),
        }
    }

    fn refused(&self, name: String, reason: &'static str) -> BreakdownError {
        BreakdownError::Refused { place: self.place.into(), name, reason }
    }

    fn count(&self) -> Result<Breakdown, BreakdownError> {
        let default = Count::default();
        let label = match self.fields.get("label") {
            None => None,
            Some(Value::String(label)) => Some(label.clone()),
            Some(_) => return Err(shape(&inner(self.place, "label"), "a text")),
        };
        Ok(Breakdown::Count(Count {
            count: self.flag("count")?.unwrap_or(default.count),
            bytes: self.flag("bytes")?.unwrap_or(default.bytes),
            slop: self.flag("slop")?.unwrap_or(default.slop),
            label,
        }))
    }

    fn split(&self, by: &str) -> Result<Breakdown, BreakdownError> {
        let axis = match by {
            "allocationStack" => {
                let (depth, invert) = (self.depth()?, self.flag("invert")?.unwrap_or(false));
                Axis::Stack(StackCut { depth, invert })
            }
            "site" => Axis::Site,
            "filename" => Axis::File,
            "reporter" => Axis::Reporter { depth: self.depth()? },
            "field" => Axis::Field,
            "thread" => Axis::Thread,
            "scope" => Axis::Scope,
            "crate" => Axis::Crate,
            "size" => Axis::Size,
            "sizeClass" => Axis::SizeClass,
            "age" => Axis::Age { edges: self.edges()? },
            // `type` or `objectClass`.
            _ => Axis::Type,
        };
        let then = self.child("then")?;
        let missing = missing_name(&axis)
            .map_or_else(|| Ok(Breakdown::default()), |name| self.child(name))?;
        Ok(Split { axis, then, missing }.into())
    }

    /// Reads a breakdown within this one. A missing one is a count.
    fn child(&self, name: &str) -> Result<Breakdown, BreakdownError> {
        match self.fields.get(name) {
            None => Ok(Breakdown::default()),
            Some(value) => parse(value, &inner(self.place, name)),
        }
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, BreakdownError> {
        match self.fields.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(shape(&inner(self.place, name), "true or false")),
        }
    }

    fn number(&self, name: &str) -> Result<Option<u32>, BreakdownError> {
        let Some(value) = self.fields.get(name) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.map(Some).ok_or_else(|| shape(&inner(self.place, name), "a whole number below 2^32"))
    }

    fn depth(&self) -> Result<Option<NonZeroU32>, BreakdownError> {
        let Some(depth) = self.number("depth")? else { return Ok(None) };
        let depth = NonZeroU32::new(depth);
        depth.map(Some).ok_or_else(|| shape(&inner(self.place, "depth"), "at least 1"))
    }

    fn edges(&self) -> Result<Vec<u64>, BreakdownError> {
        let Some(value) = self.fields.get("edges") else { return Ok(DEFAULT_EDGES.into()) };
        let list = value.as_array().map(|list| list.iter().map(Value::as_u64).collect());
        let edges: Option<Vec<u64>> = list.flatten();
        edges.filter(|edges| !edges.is_empty() && edges.is_sorted_by(|a, b| a < b)).ok_or_else(
            || shape(&inner(self.place, "edges"), "milliseconds, each more than the one before"),
        )
    }
}

impl Breakdown {
    /// Returns the breakdown in JSON, without properties that have their default.
    ///
    /// # Examples
    ///
    /// ```
    /// use memreport_analysis::census::{Axis, Breakdown, Split};
    ///
    /// let breakdown = Breakdown::from(Split::by(Axis::Type).then(Split::by(Axis::Scope)));
    /// assert_eq!(breakdown.to_json(), r#"{"by":"type","then":{"by":"scope"}}"#);
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        value(self).to_string()
    }
}

fn value(breakdown: &Breakdown) -> Value {
    let mut fields = Map::new();
    match breakdown {
        Breakdown::Several(list) => return list.iter().map(value).collect(),
        Breakdown::Count(Count { count, bytes, slop, label }) => {
            fields.insert("by".into(), "count".into());
            for (name, value, default) in
                [("count", count, true), ("bytes", bytes, true), ("slop", slop, false)]
            {
                if *value != default {
                    fields.insert(name.into(), (*value).into());
                }
            }
            if let Some(label) = label {
                fields.insert("label".into(), label.as_str().into());
            }
        }
        Breakdown::Bucket(Bucket { limit }) => {
            return json!({ "by": "bucket", "limit": limit });
        }
        Breakdown::State(split) => {
            fields.insert("by".into(), "coarseType".into());
            for (name, then) in ReportState::NAMES.into_iter().zip(&split.of) {
                insert(&mut fields, name, then);
            }
        }
        Breakdown::Split(split) => {
            let Split { axis, then, missing } = &**split;
            fields.insert("by".into(), json_name(axis).into());
            axis_fields(axis, &mut fields);
            insert(&mut fields, "then", then);
            if let Some(name) = missing_name(axis) {
                insert(&mut fields, name, missing);
            }
        }
    }
    Value::Object(fields)
}

fn insert(fields: &mut Map<String, Value>, name: &str, then: &Breakdown) {
    if *then != Breakdown::default() {
        fields.insert(name.into(), value(then));
    }
}

fn axis_fields(axis: &Axis, fields: &mut Map<String, Value>) {
    match axis {
        Axis::Stack(StackCut { depth, invert }) => {
            if let Some(depth) = depth {
                fields.insert("depth".into(), depth.get().into());
            }
            if *invert {
                fields.insert("invert".into(), true.into());
            }
        }
        Axis::Reporter { depth: Some(depth) } => {
            fields.insert("depth".into(), depth.get().into());
        }
        Axis::Age { edges } => {
            fields.insert("edges".into(), edges.clone().into());
        }
        _ => {}
    }
}
