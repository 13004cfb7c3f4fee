//! `traceTable` and `frameTable`: the frames of stacks, and the texts of frames.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::text::{Key, Text};
use super::{State, set};
use crate::read::model::{FrameId, MOST_FRAMES};

pub(super) struct TraceTableSeed<'a>(pub(super) &'a mut State);

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
            let frames = map.next_value_seed(FrameListSeed(&mut *state))?;
            let number = state.trace_keys.number(&key.0);
            set(&mut state.traces, number, frames.into());
        }
        Ok(())
    }
}

struct FrameListSeed<'a>(&'a mut State);

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
        let state = self.0;
        let mut frames = Vec::with_capacity(24);
        let mut is_cut = false;
        // The innermost frames come first.
        while let Some(key) = list.next_element::<Key<'de>>()? {
            if frames.len() < MOST_FRAMES {
                frames.push(FrameId(state.frame_keys.number(&key.0)));
            } else {
                is_cut = true;
            }
        }
        state.cut_stacks += usize::from(is_cut);
        Ok(frames)
    }
}

pub(super) struct FrameTableSeed<'a>(pub(super) &'a mut State);

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
