//! The JSON of a dump, parsed as a stream: no tree of values is built.

mod blocks;
mod extension;
mod tables;
mod text;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};

use super::block::TraceId;
use super::error::ReadError;
use super::input::Input;
use super::keys::Keys;
use super::model::{Dump, Frame, FrameId, Invocation, Mode, Symbol, cut_stacks_note};
use super::scan::kept::{self, Kept};
use extension::WireExtension;
use tables::{FrameTableSeed, TraceTableSeed};

/// The features that a dump may require from its reader under `memreport.needs`.
const KNOWN_FEATURES: [&str; 1] = ["scannedBlocks"];

/// Reads a dump from its JSON, and from the blocks of a scan that follow it.
pub(crate) fn parse(
    json: &[u8],
    blocks: &mut impl Input,
    kept: Kept<'_>,
) -> Result<Dump, ReadError> {
    if json.is_empty() {
        return Err(match blocks.fill_buf().map(<[u8]>::is_empty) {
            Ok(true) => ReadError::Empty,
            Ok(false) => ReadError::Zeros,
            Err(error) => blocks.error(error),
        });
    }
    let mut state = State::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let parsed =
        TopSeed(&mut state).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    // The error of a visitor is more precise than the JSON error that it had to return.
    if let Some(failure) = state.failure {
        return Err(failure);
    }
    parsed.map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => ReadError::Truncated { line: error.line() },
        _ => ReadError::Json(error),
    })?;
    let scanned_blocks = state.scanned_blocks;
    let mut dump = state.finish()?;
    if let Some(count) = scanned_blocks {
        // One byte of zeros ends the JSON.
        kept::read(&mut dump, count, blocks, kept, json.len() as u64 + 1)?;
    }
    Ok(dump)
}

/// The parts of a dump that are parsed so far.
#[derive(Default)]
struct State {
    dump: Dump,
    trace_keys: Keys,
    holder_keys: Keys,
    frame_keys: Keys,
    traces: Vec<Option<Box<[FrameId]>>>,
    /// The number of stacks whose outermost frames are left out.
    cut_stacks: usize,
    frames: Vec<Option<Box<str>>>,
    symbols: Vec<Option<Box<Symbol>>>,
    seen: Vec<Top>,
    /// The number of blocks of a scan behind the JSON.
    scanned_blocks: Option<u64>,
    failure: Option<ReadError>,
}

impl State {
    /// Stores the error and returns the JSON error that ends the parse.
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
        self.dump.notes.extend(cut_stacks_note(self.cut_stacks));
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
                    state.scanned_blocks = wire.scanned_blocks;
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
