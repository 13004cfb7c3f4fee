//! Converts the chosen blocks of a recording to a dump, for everything that reads dumps: records,
//! profiles, flame graphs.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{Block, Estimate, Recording, RecordingError, Site, Which};
use crate::read::cut_stacks_note;

/// The properties of equal blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    site: u32,
    requested: u64,
    usable: u64,
    /// The bits of the weight, which is an `f64`.
    weight: u64,
}

/// The chosen blocks, with equal ones counted.
struct Chosen {
    which: Which,
    kinds: BTreeMap<Kind, u64>,
    sum: Estimate,
}

impl Chosen {
    fn none(which: Which) -> Self {
        Self { which, kinds: BTreeMap::new(), sum: Estimate::default() }
    }

    fn add(&mut self, block: &Block) {
        self.sum.add(block);
        let Block { requested, usable, weight, .. } = *block;
        let site = match (self.which, block.freed) {
            (Which::Freed, Some(freed)) => freed.site,
            _ => block.site,
        };
        let kind = Kind { site, requested, usable, weight: weight.to_bits() };
        *self.kinds.entry(kind).or_default() += 1;
    }
}

impl Recording {
    /// Returns the chosen blocks as a dump of Mozilla's format 5, in JSON.
    ///
    /// # Errors
    ///
    /// The same as those of [`each_block`](Self::each_block).
    pub fn dump(&self, which: Which) -> Result<Vec<u8>, RecordingError> {
        self.dumps([which]).map(|[dump]| dump)
    }

    /// Returns several choices of blocks as [`dump`](Self::dump) does, each as a dump of its own.
    /// The blocks are read once.
    ///
    /// # Errors
    ///
    /// The same as those of [`each_block`](Self::each_block).
    pub fn dumps<const N: usize>(&self, which: [Which; N]) -> Result<[Vec<u8>; N], RecordingError> {
        let mut choices = which.map(Chosen::none);
        let peak = self.peak().map(|peak| peak.time);
        self.each_block(|block| {
            for chosen in &mut choices {
                if self.is_chosen(block, chosen.which, peak) {
                    chosen.add(block);
                }
            }
        })?;
        Ok(choices.map(|chosen| self.dump_of_chosen(&chosen)))
    }

    fn dump_of_chosen(&self, Chosen { which, kinds, sum }: &Chosen) -> Vec<u8> {
        let blocks: Vec<_> = kinds.iter().map(|(kind, count)| self.group(*kind, *count)).collect();
        let sites = kinds.keys().filter_map(|kind| self.sites.get(&kind.site));
        let all = json!({
            "blocks": sum.blocks.round(), "bytes": sum.bytes.round(), "error": sum.error().round(),
        });
        let reason = match which {
            Which::Allocated => "all that was allocated while it was recorded",
            Which::Retained => "what lived at the end of the recording",
            Which::AtPeak => "what lived at the peak of the recording",
            Which::Temporary => "what was freed within a millisecond",
            Which::Freed => "what was freed while it was recorded, by the stacks that freed it",
        };
        self.dump_of(&blocks, sites, &self.own_fields(reason, &all))
    }

    pub(super) fn dump_of<'r>(
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

    fn group(&self, kind: Kind, count: u64) -> Value {
        let Kind { site, requested, usable, weight } = kind;
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

    /// Returns the text of a return address, with the module that contains it.
    pub(super) fn frame(&self, address: u64) -> String {
        // The last module is the current one if several were loaded at one address.
        let module = self
            .modules
            .iter()
            .rev()
            .find(|module| module.segments.iter().any(|segment| segment.contains(&address)));
        match module {
            Some(module) => {
                format!("#00: ???[{} +0x{:x}]", module.path, address.wrapping_sub(module.base))
            }
            None => format!("#00: ???[??? +0x{address:x}]"),
        }
    }

    pub(super) fn own_fields(&self, reason: &str, all: &Value) -> Value {
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
        let scopes: Vec<_> =
            self.scopes.iter().map(|scope| json!([scope.outer, scope.name])).collect();
        let spans = self.spans.iter().map(|link| json!([link.scope, link.trace, link.span]));
        let notes = self.incomplete().into_iter().chain(cut_stacks_note(self.cut_stacks));
        json!({
            "version": 1,
            "needs": [],
            "mode": if self.sample_bytes.is_some() { "profile" } else { "live" },
            "program": self.program,
            "pid": self.pid,
            "uptimeMs": self.length / 1000,
            "reason": reason,
            "notes": notes.collect::<Vec<_>>(),
            "modules": modules,
            "threads": threads,
            "scopes": scopes,
            "spans": spans.collect::<Vec<_>>(),
            "sampled": self.sample_bytes.map(|bytes| json!({ "sampleBytes": bytes, "all": all })),
        })
    }
}

/// Returns the key of a stack. Sites of several threads may share it.
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
