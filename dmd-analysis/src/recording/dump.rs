//! A choice of a recording's blocks as a DMD dump, so that whatever reads dumps reads them: records, profiles, flame graphs.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{Block, Recording, Site, Which};

/// Blocks that are alike: site, sizes, and the bits of the weight.
type Kind = (u32, u64, u64, u64);

impl Recording {
    /// The chosen blocks as a dump of Mozilla's format 5, in JSON.
    #[must_use]
    pub fn dump(&self, which: Which) -> Vec<u8> {
        let mut kinds: BTreeMap<Kind, u64> = BTreeMap::new();
        for block in self.blocks(which) {
            let Block { site, requested, usable, weight, .. } = *block;
            *kinds.entry((site, requested, usable, weight.to_bits())).or_default() += 1;
        }
        let blocks: Vec<_> = kinds.iter().map(|(kind, count)| self.group(*kind, *count)).collect();
        let sites = kinds.keys().filter_map(|(site, ..)| self.sites.get(site));
        let sum = self.sum(which);
        let all = json!({
            "blocks": sum.blocks.round(), "bytes": sum.bytes.round(), "error": sum.error().round(),
        });
        let reason = match which {
            Which::Allocated => "all that was allocated while it was recorded",
            Which::Retained => "what lived at the end of the recording",
            Which::AtPeak => "what lived at the peak of the recording",
            Which::Temporary => "what was given back within a millisecond",
        };
        self.dump_of(&blocks, sites, &self.own_fields(reason, &all))
    }

    /// A block of no bytes for each site, in the order of their numbers, as a dump; before them one of no site.
    pub(crate) fn site_dump(&self) -> Vec<u8> {
        let blocks = self.sites.keys().map(|site| self.group((*site, 0, 0, 0), 1));
        let blocks: Vec<_> = std::iter::once(json!({ "req": 0 })).chain(blocks).collect();
        let own = self.own_fields("where blocks of the recording were allocated", &json!({}));
        self.dump_of(&blocks, self.sites.values(), &own)
    }

    fn dump_of<'r>(
        &self,
        blocks: &[Value],
        sites: impl Iterator<Item = &'r Site>,
        own: &Value,
    ) -> Vec<u8> {
        let mut traces = Map::new();
        let mut frames = Map::new();
        sites.for_each(|site| self.add_stack(site, &mut traces, &mut frames));
        let dump = json!({
            "version": 5,
            "invocation": { "dmdEnvVar": null, "mode": "live" },
            "blockList": blocks,
            "memreport": own,
            "traceTable": traces,
            "frameTable": frames,
        });
        dump.to_string().into_bytes()
    }

    fn group(&self, (site, requested, usable, weight): Kind, count: u64) -> Value {
        let mut group = Map::new();
        group.insert("req".into(), requested.into());
        if usable > requested {
            group.insert("slop".into(), (usable - requested).into());
        }
        if let Some(site) = self.sites.get(&site) {
            group.insert("thread".into(), site.thread.into());
            if site.scope != 0 {
                group.insert("scope".into(), site.scope.into());
            }
            if !site.stack.is_empty() {
                group.insert("alloc".into(), stack_key(site).into());
            }
        }
        if count != 1 {
            group.insert("num".into(), count.into());
        }
        let weight = f64::from_bits(weight);
        if weight > 1.0 {
            group.insert("weight".into(), weight.into());
        }
        group.into()
    }

    fn add_stack(
        &self,
        site: &Site,
        traces: &mut Map<String, Value>,
        frames: &mut Map<String, Value>,
    ) {
        if site.stack.is_empty() {
            return;
        }
        let keys: Vec<Value> =
            site.stack.iter().map(|address| frame_key(*address).into()).collect();
        for address in &site.stack {
            frames.entry(frame_key(*address)).or_insert_with(|| self.frame(*address).into());
        }
        traces.insert(stack_key(site), keys.into());
    }

    /// A return address, by the file that it is in.
    fn frame(&self, address: u64) -> String {
        // The module that was loaded there last.
        let module = self.modules.iter().rev().find(|module| {
            module.segments.iter().any(|(from, to)| (*from..*to).contains(&address))
        });
        match module {
            Some(module) => {
                format!("#00: ???[{} +0x{:x}]", module.path, address.wrapping_sub(module.base))
            }
            None => format!("#00: ???[??? +0x{address:x}]"),
        }
    }

    fn own_fields(&self, reason: &str, all: &Value) -> Value {
        let modules: Vec<_> = self
            .modules
            .iter()
            .map(|module| {
                json!({ "path": module.path, "buildId": module.build_id, "base": format!("{:x}", module.base) })
            })
            .collect();
        let threads: Vec<_> = self
            .threads
            .iter()
            .map(|(number, thread)| json!({ "id": number, "tid": thread.tid, "name": thread.name }))
            .collect();
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(format!(
                "{} births and ends came faster than they could be recorded, and are missing",
                self.lost
            ));
        }
        json!({
            "version": 1,
            "needs": [],
            "mode": if self.sample_bytes.is_some() { "profile" } else { "live" },
            "program": self.program,
            "pid": self.pid,
            "uptimeMs": self.length / 1000,
            "reason": reason,
            "notes": notes,
            "modules": modules,
            "threads": threads,
            "scopes": self.scopes,
            "sampled": self.sample_bytes.map(|bytes| json!({ "sampleBytes": bytes, "all": all })),
        })
    }
}

/// Sites of several threads may have the same stack.
fn stack_key(site: &Site) -> String {
    site.stack.iter().fold(String::from("S"), |mut key, address| {
        // Writing to a string does not fail.
        let _ = write!(key, "{address:x}.");
        key
    })
}

fn frame_key(address: u64) -> String {
    format!("F{address:x}")
}
