//! Censuses in JSON, as SpiderMonkey answers them.
//!
//! A map whose keys are texts is an object. One whose keys are stacks is a list of pairs, which JavaScript's `new Map` takes.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::breakdown::{Breakdown, Count};
use super::item::{Amount, State};
use super::node::{Blocks, Bucketed, Census, Counted, Group, Key, Node};

impl Census {
    /// Writes the census as one line of JSON.
    ///
    /// # Errors
    ///
    /// If writing fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &self.value(&self.root, &self.breakdown))?;
        writeln!(out)
    }

    fn value(&self, node: &Node, breakdown: &Breakdown) -> Value {
        match (&node.counted, breakdown) {
            (Counted::Bucket(bucketed), _) => self.listed(bucketed),
            (Counted::Several(nodes), Breakdown::Several(several)) => {
                nodes.iter().zip(several).map(|(node, one)| self.value(node, one)).collect()
            }
            (Counted::Groups(groups), Breakdown::CoarseType(coarse)) => {
                let of = |group: &Group| {
                    let state = State::NAMES.iter().position(|name| group.key == Key::Fixed(name));
                    let then = state.and_then(|state| coarse.of.get(state));
                    (group.key.describe(), self.value(&group.node, then.unwrap_or(&COUNTED)))
                };
                Value::Object(groups.iter().map(of).collect())
            }
            (Counted::Groups(groups), Breakdown::Split(split)) => {
                let of = |group: &Group| match group.key {
                    Key::Fixed(_) => self.value(&group.node, &split.missing),
                    _ => self.value(&group.node, &split.then),
                };
                if matches!(split.axis, super::Axis::AllocationStack { .. }) {
                    // As SpiderMonkey has it: no entry for blocks without a stack where there are none.
                    let is_there = |group: &&Group| {
                        group.key != Key::Fixed("noStack") || group.node.amount != Amount::default()
                    };
                    let pair = |group: &Group| json!([key(&group.key), of(group)]);
                    groups.iter().filter(is_there).map(pair).collect()
                } else {
                    Value::Object(
                        groups.iter().map(|group| (group.key.describe(), of(group))).collect(),
                    )
                }
            }
            (_, Breakdown::Count(count)) => self.count(&node.amount, count),
            _ => self.count(&node.amount, &Count::default()),
        }
    }

    fn count(&self, amount: &Amount, of: &Count) -> Value {
        let mut fields = Map::new();
        let wanted = [
            (of.count, "count", amount.count),
            (of.bytes, "bytes", amount.bytes),
            (of.slop, "slop", amount.slop),
            (of.count && self.is_sampled, "sampledCount", amount.sampled_count),
            (of.bytes && self.is_sampled, "sampledBytes", amount.sampled_bytes),
        ];
        for (is_wanted, name, number) in wanted {
            if is_wanted {
                fields.insert(name.into(), number.into());
            }
        }
        if let Some(label) = &of.label {
            fields.insert("label".into(), label.as_str().into());
        }
        Value::Object(fields)
    }

    fn listed(&self, bucketed: &Bucketed) -> Value {
        let one = |Blocks { address, amount, size, slop, age_ms }: &Blocks| {
            let mut fields = match self.count(amount, &Count::default()) {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
            fields.insert("size".into(), (*size).into());
            fields.insert("slop".into(), (*slop).into());
            if let Some(address) = address {
                fields.insert("address".into(), format!("{address:x}").into());
            }
            if let Some(age) = age_ms {
                fields.insert("ageMs".into(), (*age).into());
            }
            Value::Object(fields)
        };
        json!({
            "blocks": bucketed.listed.iter().map(one).collect::<Vec<_>>(),
            "leftOut": self.count(&bucketed.left_out, &Count::default()),
        })
    }
}

const COUNTED: Breakdown =
    Breakdown::Count(Count { count: true, bytes: true, slop: false, label: None });

fn key(key: &Key) -> Value {
    match key {
        Key::Stack(frames) => frames.iter().map(|frame| &**frame).collect(),
        key => key.describe().into(),
    }
}
