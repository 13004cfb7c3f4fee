//! Makes a dump self-contained: frames become functions and lines, and every other field keeps its
//! text, even unknown ones. The blocks of a scan become JSON, which Mozilla's tools read.
//!
//! The text is copied field by field, not parsed as a dump. An address with inlined functions
//! becomes several frames, so the stacks are rewritten. Details of symbols beyond a frame's text go
//! to the key `symbols` under `memreport`.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::{error, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::read::input::Input;
use crate::read::scan::scanned::{Scanned, ScannedBlock};
use crate::read::{
    DEFAULT_LIMIT, Dump, Frame, FrameId, Holder, ReadError, Symbol, Unpacked, read_slice,
};
use crate::symbols::{Report, Symboliser};

/// Writes the dump with symbolicated frames, as JSON, and returns the result of the lookup.
///
/// The blocks of a scan go from the input to the output one by one, so that memory does not grow
/// with their number, only with the largest of them. Nothing is written before the JSON of the dump
/// has been read.
///
/// # Errors
///
/// If the input cannot be read or is not a dump, or if the output cannot be written.
pub fn symbolicate(
    input: impl Read,
    symboliser: &mut Symboliser,
    out: &mut dyn Write,
) -> Result<Report, SymbolicateError> {
    let mut input = Unpacked::open(input)?;
    let json = input.json(DEFAULT_LIMIT)?;
    if json.is_empty() {
        return Err(ReadError::Empty.into());
    }
    let fields: Pairs<&RawValue> = serde_json::from_slice(&json).map_err(not_a_dump)?;
    let frames: Pairs<String> = parsed(&fields, "frameTable")?;
    let traces: Pairs<Vec<String>> = parsed(&fields, "traceTable")?;
    let mut dump = read_slice(&one_trace_for_each_frame(&fields, &frames)?)?;
    let report = symboliser.symbolicate(&mut dump);
    let (traces, frames) = symbolicated(&traces, &frames, &dump);
    let scanned = scanned_count(&fields)?;
    let mut separator = '{';
    for (name, value) in &fields.0 {
        put(out, &format!("{separator}{}:", json!(name)))?;
        separator = ',';
        let new = match (&**name, scanned) {
            ("traceTable", _) => raw(&traces)?,
            ("frameTable", _) => raw(&frames)?,
            ("memreport", _) => raw(&extension(value, &dump)?)?,
            ("blockList", Some(count)) => {
                write_blocks(value, count, &mut input, out)?;
                continue;
            }
            _ => {
                put(out, value.get())?;
                continue;
            }
        };
        put(out, new.get())?;
    }
    put(out, "}")?;
    Ok(report)
}

/// Writes the text and empties it, if it is long enough.
fn put_if_long(out: &mut dyn Write, text: &mut String) -> Result<(), SymbolicateError> {
    if text.len() >= PIECE {
        put(out, text)?;
        text.clear();
    }
    Ok(())
}

fn put(out: &mut dyn Write, text: &str) -> Result<(), SymbolicateError> {
    out.write_all(text.as_bytes()).map_err(SymbolicateError::Write)
}

/// The reason why a symbolicated dump could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum SymbolicateError {
    /// The dump could not be read.
    Read(ReadError),
    /// The output could not be written.
    Write(io::Error),
}

impl fmt::Display for SymbolicateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl error::Error for SymbolicateError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Read(error) => error.source(),
            Self::Write(error) => error.source(),
        }
    }
}

impl From<ReadError> for SymbolicateError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Returns the stacks and the frames with symbols, by their keys. In `dump`, each of the first
/// stacks contains the frames that replace one of `frames`.
fn symbolicated(
    traces: &Pairs<Vec<String>>,
    frames: &Pairs<String>,
    dump: &Dump,
) -> (Pairs<Vec<String>>, Pairs<String>) {
    let replaced: HashMap<&str, &[FrameId]> =
        frames.0.iter().zip(&dump.traces).map(|((key, _), frames)| (&**key, &**frames)).collect();
    let key_of = |frame: &FrameId| key(frame.index());
    let traces = traces.0.iter().map(|(name, old)| {
        // A missing frame stays missing, under an unused key.
        let new = old.iter().flat_map(|old| match replaced.get(&**old) {
            Some(frames) => frames.iter().map(key_of).collect(),
            None => vec![format!("missing {old}")],
        });
        (name.clone(), new.collect::<Vec<String>>())
    });
    let traces = Pairs(traces.collect());
    let used = dump.frames.iter().enumerate().take(frame_count(dump, frames.0.len()));
    (traces, Pairs(used.map(|(at, frame)| (key(at), frame.text.to_string())).collect()))
}

/// Returns the number of blocks of a scan behind the JSON; `None` if the JSON has the blocks.
fn scanned_count(fields: &Pairs<&RawValue>) -> Result<Option<u64>, ReadError> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Counted {
        scanned_blocks: Option<u64>,
    }
    let Some(extension) = fields.get("memreport") else { return Ok(None) };
    let counted: Counted = serde_json::from_str(extension.get()).map_err(ReadError::Json)?;
    Ok(counted.scanned_blocks)
}

/// The bytes of text that are written at once.
const PIECE: usize = 64 << 10;

/// Writes the block list of a scan as JSON: each block with the fields of its kind.
fn write_blocks(
    kinds: &RawValue,
    count: u64,
    input: &mut impl Input,
    out: &mut dyn Write,
) -> Result<(), SymbolicateError> {
    let kinds: Vec<Pairs<&RawValue>> =
        serde_json::from_str(kinds.get()).map_err(ReadError::Json)?;
    let fields = |kind: &Pairs<&RawValue>| {
        let fields = kind.0.iter().filter(|(name, _)| name != "req");
        fields.map(|(name, value)| format!(",{}:{value}", json!(name))).collect::<String>()
    };
    let kinds: Vec<String> = kinds.iter().map(fields).collect();
    let mut blocks = Scanned::new(count, input);
    let (mut text, mut words) = (String::from("["), Vec::new());
    let mut separator = "\n";
    while let Some(block) = blocks.next()? {
        blocks.words(block.words, &mut words)?;
        let ScannedBlock { address, req, slop, kind, .. } = block;
        text += &format!("{separator}{{\"req\":{req},\"addr\":\"{address:x}\"");
        separator = ",\n";
        if slop != 0 {
            text += &format!(",\"slop\":{slop}");
        }
        text += kinds.get(kind).ok_or_else(|| blocks.damaged())?;
        let mut before = ",\"contents\":[";
        for word in words.drain(..) {
            text += &format!("{before}\"{word:x}\"");
            before = ",";
            put_if_long(out, &mut text)?;
        }
        let has_words = before == ",";
        text += if has_words { "]}" } else { "}" };
        // Blocks may lack words.
        put_if_long(out, &mut text)?;
    }
    text += "]";
    put(out, &text)
}

fn not_a_dump(error: serde_json::Error) -> ReadError {
    match error.classify() {
        serde_json::error::Category::Eof => ReadError::Truncated { line: error.line() },
        _ => ReadError::Json(error),
    }
}

fn parsed<'j, T: Deserialize<'j>>(
    fields: &Pairs<&'j RawValue>,
    name: &'static str,
) -> Result<T, ReadError> {
    let field = fields.get(name).ok_or(ReadError::Missing(name))?;
    serde_json::from_str(field.get()).map_err(ReadError::Json)
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, ReadError> {
    serde_json::value::to_raw_value(value).map_err(ReadError::Json)
}

/// Returns a dump without blocks in which each frame is a stack of its own. Afterwards, the stack
/// contains the frames that replace the frame.
fn one_trace_for_each_frame(
    fields: &Pairs<&RawValue>,
    frames: &Pairs<String>,
) -> Result<Vec<u8>, ReadError> {
    let traces = frames.0.iter().enumerate().map(|(at, (key, _))| (format!("t{at}"), vec![key]));
    let mut small = Pairs(Vec::new());
    // The stacks come first, so that they are numbered in the order of the frames.
    small.0.push(("traceTable".to_owned(), raw(&Pairs(traces.collect()))?));
    small.0.push(("blockList".to_owned(), raw(&json!([]))?));
    for (name, value) in &fields.0 {
        let value = match &**name {
            "version" | "invocation" | "frameTable" => (*value).to_owned(),
            "memreport" => raw(&without_scanned_blocks(value)?)?,
            _ => continue,
        };
        small.0.push((name.clone(), value));
    }
    serde_json::to_vec(&small).map_err(ReadError::Json)
}

/// Returns the number of frames of the first stacks. Frames behind them are placeholders for
/// missing ones.
fn frame_count(dump: &Dump, traces: usize) -> usize {
    let used = dump.traces.iter().take(traces).flat_map(|frames| frames.iter());
    used.map(|frame| frame.index() + 1).max().unwrap_or(0)
}

/// Returns our extension with the names of statics and the details of symbols.
fn extension(value: &RawValue, dump: &Dump) -> Result<Value, ReadError> {
    let mut fields = without_scanned_blocks(value)?;
    let names = static_names(dump);
    for list in ["holders", "reportedStatics", "statics"] {
        let places: Vec<&mut Value> = match fields.get_mut(list) {
            Some(Value::Object(map)) => map.values_mut().collect(),
            Some(Value::Array(list)) => list.iter_mut().collect(),
            _ => Vec::new(),
        };
        for place in places {
            let text = |key: &str| place.get(key).and_then(Value::as_str).unwrap_or_default();
            if let Some(name) = names.get(&(text("module"), text("offset").to_owned())) {
                place["name"] = (*name).into();
            }
        }
    }
    let symbols = dump.frames.iter().enumerate().filter_map(|(at, frame)| {
        let Frame { symbol, .. } = frame;
        Some((key(at), symbol_fields(symbol.as_ref()?)))
    });
    fields["symbols"] = Value::Object(symbols.collect());
    Ok(fields)
}

/// Returns our extension for a dump that has no blocks behind its JSON.
fn without_scanned_blocks(value: &RawValue) -> Result<Value, ReadError> {
    let mut fields: Value = serde_json::from_str(value.get()).map_err(ReadError::Json)?;
    if let Value::Object(fields) = &mut fields
        && fields.remove("scannedBlocks").is_some()
    {
        fields.insert("needs".to_owned(), json!([]));
    }
    Ok(fields)
}

fn static_names(dump: &Dump) -> HashMap<(&str, String), &str> {
    let extension = dump.extension.iter();
    let places = extension.flat_map(|ours| {
        let holders = ours.holders.values().filter_map(|holder| match holder {
            Holder::Static(place) => Some(place),
            Holder::Skipped(_) => None,
        });
        let words = ours.statics.iter().map(|word| &word.place);
        holders.chain(&ours.reported_statics).chain(words)
    });
    places
        .filter_map(|place| {
            let at = (&*place.module, format!("{:x}", place.offset));
            Some((at, place.name.as_deref()?))
        })
        .collect()
}

fn symbol_fields(symbol: &Symbol) -> Value {
    let Symbol { function, name, file, line, inlined, folded, module } = symbol;
    let [name, file, module] = [name, file, module].map(Option::as_deref);
    json!({
        "function": &**function, "name": name, "file": file, "line": line, "inlined": inlined, "folded": folded,
        "module": module,
    })
}

/// Returns a key in DMD's form, which is base 32.
fn key(mut number: usize) -> String {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[number % 32]));
        number /= 32;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// The entries of an object, in the order of the text.
struct Pairs<T>(Vec<(String, T)>);

impl<T> Pairs<T> {
    fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
}

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;

    #[test]
    fn statics_get_their_names_wherever_they_stand() {
        let dump = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"scan"},
            "blockList":[],"traceTable":{},"frameTable":{},"memreport":{"version":1,
            "holders":{"H":{"module":"/shop","offset":"1f"},"I":{"type":"Till","field":"queue"}},
            "reportedStatics":[{"module":"/shop","offset":"20","name":"shop::CACHE"}],
            "statics":[{"module":"/lib","offset":"1f","name":"lib::STOCK","to":"1000"}]}}"##;
        let mut dump = read_slice(dump.as_bytes()).unwrap();
        for holder in dump.extension.as_mut().unwrap().holders.values_mut() {
            if let Holder::Static(place) = holder {
                place.name = Some("shop::STATE".to_owned());
            }
        }
        let fields = r#"{"version":1,"holders":{"H":{"module":"/shop","offset":"1f"},"I":{"type":"Till"}},
            "reportedStatics":[{"module":"/shop","offset":"20"},{"module":"/shop","offset":"28"}],
            "statics":[{"module":"/lib","offset":"1f"}]}"#;
        let expected = json!({
            "version": 1,
            "holders": {
                "H": { "module": "/shop", "offset": "1f", "name": "shop::STATE" },
                "I": { "type": "Till" },
            },
            "reportedStatics": [
                { "module": "/shop", "offset": "20", "name": "shop::CACHE" },
                { "module": "/shop", "offset": "28" },
            ],
            "statics": [{ "module": "/lib", "offset": "1f", "name": "lib::STOCK" }],
            "symbols": {},
        });
        let fields: &RawValue = serde_json::from_str(fields).unwrap();
        assert_eq!(extension(fields, &dump).unwrap(), expected);
    }

    #[test]
    fn keys_are_numbers_in_base_32() {
        let table = [(0, "A"), (25, "Z"), (31, "f"), (32, "BA"), (1023, "ff"), (1024, "BAA")];
        for (number, expected) in table {
            assert_eq!(key(number), expected);
        }
    }
}
