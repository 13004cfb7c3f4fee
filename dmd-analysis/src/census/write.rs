//! Censuses in JSON, in SpiderMonkey's form, biggest groups first.
//!
//! A map whose keys are texts is an object. A map whose keys are stacks is a list of pairs, which
//! JavaScript's `new Map` takes.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::amount::Amount;
use super::breakdown::{Breakdown, Count};
use super::node::{Blocks, Bucketed, Census, Counted, Group, Node};
use crate::axis::{Axis, Key, ReportState};

impl Census {
    /// Writes the census as one line of JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if writing fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let root =
            Wire { node: &self.root, breakdown: &self.breakdown, is_sampled: self.is_sampled };
        serde_json::to_writer(&mut *out, &root)?;
        writeln!(out)
    }
}

/// A node and its breakdown.
#[derive(Clone, Copy)]
struct Wire<'c> {
    node: &'c Node,
    breakdown: &'c Breakdown,
    is_sampled: bool,
}

const PLAIN_BREAKDOWN: Breakdown =
    Breakdown::Count(Count { count: true, bytes: true, slop: false, label: None });

impl<'c> Wire<'c> {
    /// Returns a group within it.
    fn inner(self, group: &'c Group) -> Wire<'c> {
        let breakdown = match (self.breakdown, &group.key) {
            (Breakdown::State(split), key) => {
                let state = ReportState::NAMES.iter().position(|name| *key == Key::Fixed(name));
                state.and_then(|state| split.of.get(state)).unwrap_or(&PLAIN_BREAKDOWN)
            }
            (Breakdown::Split(split), Key::Fixed(_)) => &split.missing,
            (Breakdown::Split(split), _) => &split.then,
            _ => &PLAIN_BREAKDOWN,
        };
        Wire { node: &group.node, breakdown, ..self }
    }

    fn has_stacks(self) -> bool {
        match self.breakdown {
            Breakdown::Split(split) => matches!(split.axis, Axis::Stack(_)),
            _ => false,
        }
    }
}

impl<'c> Serialize for Wire<'c> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Wire { node, breakdown, is_sampled } = *self;
        match (&node.counted, breakdown) {
            (Counted::Groups(groups), _) if self.has_stacks() => {
                // Like SpiderMonkey, writes no entry for blocks without a stack where there are
                // none.
                let is_there = |group: &&'c Group| {
                    !matches!(group.key, Key::Fixed(_)) || group.node.amount != Amount::default()
                };
                let pair = |group: &'c Group| (WireKey(&group.key), self.inner(group));
                out.collect_seq(groups.iter().filter(is_there).map(pair))
            }
            (Counted::Groups(groups), _) => out
                .collect_map(groups.iter().map(|group| (group.key.describe(), self.inner(group)))),
            (Counted::Several(nodes), Breakdown::Several(several)) => {
                let both = nodes.iter().map(|group| &group.node).zip(several);
                out.collect_seq(both.map(|(node, breakdown)| Wire { node, breakdown, is_sampled }))
            }
            (Counted::Bucket(bucketed), _) => WireBucket { bucketed, is_sampled }.serialize(out),
            (_, Breakdown::Count(count)) => {
                WireCount { amount: &node.amount, count, is_sampled }.serialize(out)
            }
            _ => plain(&node.amount, is_sampled).serialize(out),
        }
    }
}

/// A stack as a list of its frames, or the name of the group without stacks.
struct WireKey<'c>(&'c Key);

impl Serialize for WireKey<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Key::Stack(frames) => out.collect_seq(frames.iter().map(|frame| &**frame)),
            key => out.serialize_str(&key.describe()),
        }
    }
}

/// A figure of an amount.
struct Field {
    is_wanted: bool,
    name: &'static str,
    number: i64,
}

struct WireCount<'c> {
    amount: &'c Amount,
    count: &'c Count,
    is_sampled: bool,
}

const PLAIN: Count = Count { count: true, bytes: true, slop: false, label: None };

fn plain(amount: &Amount, is_sampled: bool) -> WireCount<'_> {
    WireCount { amount, count: &PLAIN, is_sampled }
}

impl WireCount<'_> {
    fn fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let (amount, of) = (self.amount, self.count);
        let field = |is_wanted, name, number| Field { is_wanted, name, number };
        let fields = [
            field(of.count, "count", amount.count),
            field(of.bytes, "bytes", amount.bytes),
            field(of.slop, "slop", amount.slop),
            field(of.count && self.is_sampled, "sampledCount", amount.sampled_count),
            field(of.bytes && self.is_sampled, "sampledBytes", amount.sampled_bytes),
        ];
        let mut wanted = fields.iter().filter(|field| field.is_wanted);
        wanted.try_for_each(|field| map.serialize_entry(field.name, &field.number))
    }
}

impl Serialize for WireCount<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        self.fields(&mut map)?;
        if let Some(label) = &self.count.label {
            map.serialize_entry("label", label)?;
        }
        map.end()
    }
}

struct WireBucket<'c> {
    bucketed: &'c Bucketed,
    is_sampled: bool,
}

impl Serialize for WireBucket<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let is_sampled = self.is_sampled;
        let lines = self.bucketed.listed.iter();
        let lines: Vec<_> = lines.map(|blocks| WireBlocks { blocks, is_sampled }).collect();
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("blocks", &lines)?;
        map.serialize_entry("leftOut", &plain(&self.bucketed.left_out, is_sampled))?;
        map.end()
    }
}

struct WireBlocks<'c> {
    blocks: &'c Blocks,
    is_sampled: bool,
}

impl Serialize for WireBlocks<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Blocks { address, amount, size, slop, age_ms } = self.blocks;
        let mut map = out.serialize_map(None)?;
        if let Some(address) = address {
            map.serialize_entry("address", &format!("{address:x}"))?;
        }
        plain(amount, self.is_sampled).fields(&mut map)?;
        map.serialize_entry("size", size)?;
        map.serialize_entry("slop", slop)?;
        if let Some(age) = age_ms {
            map.serialize_entry("ageMs", age)?;
        }
        map.end()
    }
}
