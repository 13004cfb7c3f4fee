//! The JSON of a dump, taken in as it streams by: no tree of values is ever built.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, de};

use super::extension::WireExtension;
use super::keys::Keys;
use super::{Dump, Frame, FrameId, Invocation, Mode, ReadError, Symbol, TraceId};

mod blocks;

/// The features that a dump may demand of its reader under `memreport.needs`.
const KNOWN_FEATURES: [&str; 0] = [];

pub(crate) fn parse(json: &[u8]) -> Result<Dump, ReadError> {
    let mut state = State::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let parsed =
        TopSeed(&mut state).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    // What a visitor found wrong is more telling than the JSON error it had to return.
    if let Some(failure) = state.failure {
        return Err(failure);
    }
    parsed.map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => ReadError::Truncated { line: error.line() },
        _ => ReadError::Json(error),
    })?;
    state.finish()
}

/// What has been read so far.
#[derive(Default)]
struct State {
    dump: Dump,
    trace_keys: Keys,
    holder_keys: Keys,
    frame_keys: Keys,
    traces: Vec<Option<Box<[FrameId]>>>,
    frames: Vec<Option<Box<str>>>,
    symbols: Vec<Option<Box<Symbol>>>,
    seen: Vec<Top>,
    failure: Option<ReadError>,
}

impl State {
    /// Remembers what is wrong and gives the JSON error that ends the parse.
    fn fail<E: de::Error>(&mut self, failure: ReadError) -> E {
        self.failure = Some(failure);
        E::custom("refused")
    }

    fn trace(&mut self, key: &[u8]) -> TraceId {
        TraceId(self.trace_keys.number(key))
    }

    fn finish(mut self) -> Result<Dump, ReadError> {
        let required = [
            (Top::Version, "version"),
            (Top::Invocation, "invocation"),
            (Top::Blocks, "blockList"),
            (Top::Traces, "traceTable"),
            (Top::Frames, "frameTable"),
        ];
        if let Some((_, missing)) = required.iter().find(|(field, _)| !self.seen.contains(field)) {
            return Err(ReadError::Missing(missing));
        }
        self.resolve_traces();
        self.resolve_frames();
        Ok(self.dump)
    }

    fn resolve_traces(&mut self) {
        self.traces.resize_with(self.trace_keys.len(), || None);
        let names = std::mem::take(&mut self.trace_keys).into_names();
        let mut lacking = Vec::new();
        for (trace, name) in std::mem::take(&mut self.traces).into_iter().zip(names) {
            let frames = trace.unwrap_or_else(|| {
                let frame = self.frame_keys.number(format!("stack {name}").as_bytes());
                set(
                    &mut self.frames,
                    frame,
                    format!("#00: (stack {name} is missing from the dump)").into(),
                );
                lacking.push(name);
                Box::from([FrameId(frame)])
            });
            self.dump.traces.push(frames);
        }
        self.dump.notes.extend(lacking_note("stack", "traceTable", &lacking));
    }

    fn resolve_frames(&mut self) {
        self.frames.resize_with(self.frame_keys.len(), || None);
        let names = std::mem::take(&mut self.frame_keys).into_names();
        let mut symbols = std::mem::take(&mut self.symbols).into_iter();
        let mut lacking = Vec::new();
        for (text, name) in std::mem::take(&mut self.frames).into_iter().zip(names) {
            let text = text.unwrap_or_else(|| {
                let text = format!("#00: (frame {name} is missing from the dump)").into();
                lacking.push(name);
                text
            });
            let symbol = symbols.next().flatten();
            self.dump.frames.push(Frame { text, symbol });
        }
        self.dump.notes.extend(lacking_note("frame", "frameTable", &lacking));
    }
}

fn lacking_note(what: &str, table: &str, names: &[Box<str>]) -> Option<String> {
    let first = names.first()?;
    let count = names.len();
    let plural = if count == 1 { "" } else { "s" };
    Some(format!(
        "{count} {what}{plural} named but not in {table} (the first is {first}): the dump is damaged or was written with a fault"
    ))
}

fn set<T>(table: &mut Vec<Option<T>>, number: u32, value: T) {
    let index = number as usize;
    if table.len() <= index {
        table.resize_with(index + 1, || None);
    }
    table[index] = Some(value);
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
enum Top {
    #[serde(rename = "version")]
    Version,
    #[serde(rename = "invocation")]
    Invocation,
    #[serde(rename = "memreport")]
    Extension,
    #[serde(rename = "blockList")]
    Blocks,
    #[serde(rename = "traceTable")]
    Traces,
    #[serde(rename = "frameTable")]
    Frames,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct WireInvocation {
    #[serde(rename = "dmdEnvVar", default)]
    dmd_env_var: Option<String>,
    mode: String,
}

struct TopSeed<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for TopSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TopSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields of a DMD dump")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        while let Some(field) = map.next_key::<Top>()? {
            state.seen.push(field);
            match field {
                Top::Version => match map.next_value::<i64>()? {
                    5 => {}
                    other => return Err(state.fail(ReadError::Version(other))),
                },
                Top::Invocation => {
                    let invocation =
                        invocation(map.next_value()?).map_err(|failure| state.fail(failure))?;
                    state.dump.invocation = invocation;
                }
                Top::Extension => {
                    let mut wire: WireExtension = map.next_value()?;
                    check(&wire).map_err(|failure| state.fail(failure))?;
                    for (key, symbol) in std::mem::take(&mut wire.symbols) {
                        let frame = state.frame_keys.number(key.as_bytes());
                        set(&mut state.symbols, frame, Box::new(symbol.into()));
                    }
                    state.dump.notes.append(&mut wire.notes);
                    state.dump.extension =
                        Some(wire.resolve(&mut state.trace_keys, &mut state.holder_keys));
                }
                Top::Blocks => map.next_value_seed(blocks::BlockListSeed(state))?,
                Top::Traces => map.next_value_seed(TraceTableSeed(state))?,
                Top::Frames => map.next_value_seed(FrameTableSeed(state))?,
                Top::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

fn invocation(wire: WireInvocation) -> Result<Invocation, ReadError> {
    let mode = match wire.mode.as_str() {
        "live" => Mode::Live,
        "dark-matter" => Mode::DarkMatter,
        "cumulative" => Mode::Cumulative,
        "scan" => Mode::Scan,
        _ => return Err(ReadError::Mode(wire.mode)),
    };
    Ok(Invocation { dmd_env_var: wire.dmd_env_var, mode })
}

fn check(wire: &WireExtension) -> Result<(), ReadError> {
    if wire.version != 1 {
        return Err(ReadError::ExtensionVersion(wire.version));
    }
    match wire.needs.iter().find(|need| !KNOWN_FEATURES.contains(&need.as_str())) {
        Some(need) => Err(ReadError::Needs(need.clone())),
        None => Ok(()),
    }
}

/// A string that is copied only if it holds escapes.
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// A key, as bytes: they are compared and never shown, so it is not worth checking that they are text.
struct Key<'de>(Cow<'de, [u8]>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_bytes<E: de::Error>(self, key: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_bytes<E: de::Error>(self, key: &[u8]) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_bytes(KeyVisitor)
    }
}

struct TraceTableSeed<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for TraceTableSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TraceTableSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object from stack keys to lists of frame keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let frames = map.next_value_seed(FrameListSeed(&mut state.frame_keys))?;
            let number = state.trace_keys.number(&key.0);
            set(&mut state.traces, number, frames.into());
        }
        Ok(())
    }
}

struct FrameListSeed<'a>(&'a mut Keys);

impl<'de> DeserializeSeed<'de> for FrameListSeed<'_> {
    type Value = Vec<FrameId>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for FrameListSeed<'_> {
    type Value = Vec<FrameId>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of frame keys")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut frames = Vec::with_capacity(24);
        while let Some(key) = list.next_element::<Key<'de>>()? {
            frames.push(FrameId(self.0.number(&key.0)));
        }
        Ok(frames)
    }
}

struct FrameTableSeed<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for FrameTableSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FrameTableSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object from frame keys to descriptions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let text = map.next_value::<Text<'de>>()?;
            let number = state.frame_keys.number(&key.0);
            if state.frame_keys.len() > u32::MAX as usize - 2 {
                return Err(A::Error::custom("too many frames"));
            }
            set(&mut state.frames, number, text.0.into());
        }
        Ok(())
    }
}
