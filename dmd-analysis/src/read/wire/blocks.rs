//! `blockList`, which is most of a dump.

use std::fmt;
use std::num::NonZeroU64;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::State;
use super::text::{Key, Text};
use crate::read::block::list::Numbers;
use crate::read::block::{BlockKind, HolderId};
use crate::read::error::ReadError;
use crate::read::scan::contents::Contents;

pub(crate) struct BlockListSeed<'a>(pub(crate) &'a mut State);

impl<'de> DeserializeSeed<'de> for BlockListSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for BlockListSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of blocks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(BlockSeed(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

enum Field {
    Req,
    Slop,
    Alloc,
    Reps,
    Num,
    Addr,
    Contents,
    Thread,
    Scope,
    Weight,
    AgeMs,
    Freed,
    HeldBy,
    HeldThrough,
    Unknown,
}

impl Field {
    fn of(key: &Key<'_>) -> Self {
        match &*key.0 {
            b"req" => Self::Req,
            b"slop" => Self::Slop,
            b"alloc" => Self::Alloc,
            b"reps" | b"reportedBy" => Self::Reps,
            b"num" => Self::Num,
            b"addr" => Self::Addr,
            b"contents" => Self::Contents,
            b"thread" => Self::Thread,
            b"scope" => Self::Scope,
            b"weight" => Self::Weight,
            b"ageMs" => Self::AgeMs,
            b"freed" => Self::Freed,
            b"heldBy" => Self::HeldBy,
            b"heldThrough" => Self::HeldThrough,
            _ => Self::Unknown,
        }
    }
}

struct BlockSeed<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for BlockSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for BlockSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        let index = state.dump.blocks.len();
        let (mut req, mut slop, mut num, mut addr) = (0, 0, 1, None);
        let mut kind = BlockKind::default();
        let mut has_req = false;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            let field = Field::of(&key);
            match field {
                Field::Req => {
                    req = map.next_value()?;
                    has_req = true;
                }
                Field::Slop => slop = map.next_value()?,
                Field::Num => num = map.next_value()?,
                Field::Thread => kind.thread = map.next_value()?,
                Field::Scope => kind.scope = map.next_value()?,
                Field::Weight => kind.weight = map.next_value()?,
                Field::AgeMs => kind.age_ms = map.next_value()?,
                Field::Freed => kind.freed = map.next_value()?,
                Field::HeldBy | Field::HeldThrough => {
                    kind.is_held_through = matches!(field, Field::HeldThrough);
                    let key = map.next_value::<Key<'de>>()?;
                    kind.held_by = Some(HolderId(state.holder_keys.number(&key.0)));
                }
                Field::Alloc => kind.alloc = Some(state.trace(&map.next_value::<Key<'de>>()?.0)),
                Field::Reps => {
                    let start = state.dump.reports.len();
                    map.next_value_seed(ReportsSeed(&mut *state))?;
                    kind.reports = range(start, state.dump.reports.len());
                }
                Field::Addr => {
                    let text = map.next_value::<Text<'de>>()?;
                    let address = hex(&text.0).and_then(NonZeroU64::new);
                    addr = Some(address.ok_or_else(|| state.bad_address(&text.0))?);
                }
                Field::Contents => {
                    let start = state.dump.words.memory().len() as u64;
                    map.next_value_seed(ContentsSeed(&mut *state))?;
                    let count = state.dump.words.memory().len() as u64 - start;
                    let blocks = &state.dump.blocks;
                    let list = state.dump.contents.list(|block| blocks.at(block).req);
                    list.push(Contents::new(index, start, count));
                }
                Field::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if !has_req {
            return Err(state.fail(ReadError::BlockWithoutReq { index }));
        }
        // Blocks of a kind often follow one another.
        let kind = state.dump.blocks.add_kind(kind);
        state.dump.blocks.push(Numbers { req, slop, addr }, num, kind);
        Ok(())
    }
}

impl State {
    fn bad_address<E: serde::de::Error>(&mut self, text: &str) -> E {
        let index = self.dump.blocks.len();
        self.fail(ReadError::BadAddress { index, text: text.to_owned() })
    }
}

fn range(start: usize, end: usize) -> Option<std::ops::Range<u32>> {
    Some(u32::try_from(start).ok()?..u32::try_from(end).ok()?)
}

/// Parses an address of DMD: hexadecimal digits without a prefix.
fn hex(text: &str) -> Option<u64> {
    if text.starts_with('+') { None } else { u64::from_str_radix(text, 16).ok() }
}

struct ReportsSeed<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for ReportsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ReportsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of stack keys")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(key) = list.next_element::<Key<'de>>()? {
            let trace = self.0.trace(&key.0);
            self.0.dump.reports.push(trace);
        }
        Ok(())
    }
}

struct ContentsSeed<'a>(&'a mut State);

impl<'de> DeserializeSeed<'de> for ContentsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ContentsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of hexadecimal words")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(text) = list.next_element::<Text<'de>>()? {
            let word = hex(&text.0).ok_or_else(|| self.0.bad_address(&text.0))?;
            self.0.dump.words.memory().push(word);
        }
        Ok(())
    }
}
