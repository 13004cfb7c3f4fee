//! Writes a dump, group by group: the file is never in memory as a whole.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::{Dump, Group, Report, WrongReport};
use crate::track::sites::{self, SiteId};
use crate::track::sys::Module;

/// Writes the file.
pub(super) fn write(dump: &Dump, out: &mut dyn Write) -> io::Result<()> {
    let mut keys = Keys::default();
    out.write_all(b"{\"version\":5,\n\"invocation\":")?;
    put(out, &json!({ "dmdEnvVar": dump.wish.variable, "mode": dump.wish.mode }))?;
    out.write_all(b",\n\"blockList\":[")?;
    for (index, group) in dump.groups.iter().enumerate() {
        out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        put(out, &WireBlock::new(group, &mut keys))?;
    }
    out.write_all(b"],\n\"memreport\":")?;
    put(out, &own_fields(dump, &mut keys))?;
    out.write_all(b",\n\"traceTable\":{")?;
    write_traces(dump, &mut keys, out)?;
    out.write_all(b"},\n\"frameTable\":{")?;
    write_frames(dump, &keys, out)?;
    out.write_all(b"}}\n")
}

fn put(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(out, value)?)
}

/// One entry of the block list: blocks that are alike.
#[derive(Serialize)]
struct WireBlock {
    req: usize,
    #[serde(skip_serializing_if = "is_zero")]
    slop: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    alloc: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reps: Vec<String>,
    #[serde(skip_serializing_if = "is_one")]
    num: u64,
    /// Ours: the number of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_one(number: &u64) -> bool {
    *number == 1
}

impl WireBlock {
    fn new(group: &Group, keys: &mut Keys) -> Self {
        WireBlock {
            req: group.requested,
            slop: group.usable - group.requested,
            alloc: keys.alloc(group.site),
            reps: group.reports.iter().map(|report| keys.report(*report)).collect(),
            num: group.count,
            thread: sites::site(group.site).map(|site| site.thread),
        }
    }
}

/// The base-32 keys of traces and frames: one count for both.
#[derive(Default)]
struct Keys {
    next: u32,
    stacks: Vec<(u32, u32)>,
    by_stack: HashMap<u32, u32>,
    by_report: HashMap<u32, u32>,
    /// By return address.
    frames: HashMap<usize, u32>,
    /// By what they say, for the frames of report traces.
    words: HashMap<String, u32>,
}

impl Keys {
    fn alloc(&mut self, site: SiteId) -> Option<String> {
        let stack = Dump::stack(site)?;
        if let Some(key) = self.by_stack.get(&stack) {
            return Some(base_32(*key));
        }
        let key = self.take();
        self.by_stack.insert(stack, key);
        self.stacks.push((key, stack));
        Some(base_32(key))
    }

    fn report(&mut self, report: u32) -> String {
        let known = self.by_report.get(&report).copied();
        base_32(known.unwrap_or_else(|| {
            let key = self.take();
            self.by_report.insert(report, key);
            key
        }))
    }

    fn frame(&mut self, address: usize) -> String {
        let known = self.frames.get(&address).copied();
        base_32(known.unwrap_or_else(|| {
            let key = self.take();
            self.frames.insert(address, key);
            key
        }))
    }

    fn word(&mut self, word: String) -> String {
        let known = self.words.get(&word).copied();
        base_32(known.unwrap_or_else(|| {
            let key = self.take();
            self.words.insert(word, key);
            key
        }))
    }

    fn take(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

/// A number in digits `A` to `Z`, `a` to `f`.
fn base_32(mut number: u32) -> String {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[(number % 32) as usize]));
        number /= 32;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The extension key.
fn own_fields(dump: &Dump, keys: &mut Keys) -> serde_json::Value {
    let wrong: Vec<_> = dump.wrong.iter().map(|wrong| wrong_fields(wrong, keys)).collect();
    let mut reported: Vec<_> = keys.by_report.iter().map(|(report, key)| (*key, *report)).collect();
    reported.sort_unstable();
    let reports: serde_json::Map<_, _> = reported
        .into_iter()
        .filter_map(|(key, report)| Some((base_32(key), report_fields(dump.report(report)?))))
        .collect();
    let summary = dump.summary;
    let modules = dump.modules.iter().map(|module| {
        json!({ "path": module.path, "buildId": module.build_id, "base": format!("{:x}", module.bias) })
    });
    json!({
        "version": 1,
        "needs": [],
        "program": std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).ok(),
        "pid": std::process::id(),
        "uptimeMs": u64::try_from(dump.uptime.as_millis()).unwrap_or(u64::MAX),
        "reason": dump.moment,
        "unwinder": dump.unwinder,
        "stacks": keys.by_stack.len(),
        "walkedStacks": dump.tally.walked,
        "truncatedStacks": dump.tally.truncated,
        "lostBlocks": summary.lost_blocks,
        "lostMarks": summary.lost_marks,
        "heapAllocated": summary.heap_allocated,
        "unmeasured": summary.unmeasured,
        "bornDuring": { "blocks": summary.born_during.blocks, "bytes": summary.born_during.bytes },
        "modules": modules.collect::<Vec<_>>(),
        "threads": dump.threads.iter().map(|(number, id, name)| json!({ "id": number, "tid": id, "name": name })).collect::<Vec<_>>(),
        "reports": reports,
        "wrong": wrong,
    })
}

fn report_fields(report: &Report) -> serde_json::Value {
    match report.field {
        None => json!({ "path": report.path }),
        Some(field) => json!({
            "path": report.path,
            "type": field.owner(),
            "field": field.name(),
            "file": field.file(),
            "line": field.line(),
        }),
    }
}

fn wrong_fields(wrong: &WrongReport, keys: &mut Keys) -> serde_json::Value {
    let rep = keys.report(wrong.report);
    let mut fields = json!({
        "is": wrong.is.name(),
        "addr": format!("{:x}", wrong.address),
        "claimed": wrong.claimed,
        "rep": rep,
    });
    if let Some(block) = wrong.block {
        fields["req"] = block.requested.into();
        fields["usable"] = block.usable.into();
        if let Some(key) = keys.alloc(block.site) {
            fields["alloc"] = key.into();
        }
    }
    fields
}

fn write_traces(dump: &Dump, keys: &mut Keys, out: &mut dyn Write) -> io::Result<()> {
    let mut separator = "\n";
    for (key, stack) in std::mem::take(&mut keys.stacks) {
        let frames: Vec<String> = sites::frames(stack).map(|address| keys.frame(address)).collect();
        write!(out, "{separator}\"{}\":", base_32(key))?;
        put(out, &frames)?;
        separator = ",\n";
    }
    let mut reported: Vec<_> = keys.by_report.iter().map(|(report, key)| (*key, *report)).collect();
    reported.sort_unstable();
    for (key, report) in reported {
        let Some(report) = dump.report(report) else { continue };
        let frames: Vec<String> = report_words(report).map(|word| keys.word(word)).collect();
        write!(out, "{separator}\"{}\":", base_32(key))?;
        put(out, &frames)?;
        separator = ",\n";
    }
    Ok(())
}

/// The frames of a report trace: the field that led to the block, then the reporter.
fn report_words(report: &Report) -> impl Iterator<Item = String> {
    let field = report.field.map(|field| {
        format!("{}.{} ({}:{})", field.owner(), field.name(), field.file(), field.line())
    });
    field.into_iter().chain([report.path.clone()])
}

fn write_frames(dump: &Dump, keys: &Keys, out: &mut dyn Write) -> io::Result<()> {
    let places = Places::new(&dump.modules);
    let addresses = keys.frames.iter().map(|(address, key)| (*key, places.describe(*address)));
    let words = keys.words.iter().map(|(word, key)| (*key, word.clone()));
    let mut frames: Vec<_> = addresses.chain(words).collect();
    frames.sort_unstable();
    let mut separator = "\n";
    for (key, description) in frames {
        write!(out, "{separator}\"{}\":", base_32(key))?;
        put(out, &format!("#00: {description}"))?;
        separator = ",\n";
    }
    Ok(())
}

/// Modules by address.
struct Places<'d> {
    /// First address, one past the last, module; sorted.
    segments: Vec<(usize, usize, &'d Module)>,
}

impl<'d> Places<'d> {
    fn new(modules: &'d [Module]) -> Self {
        let of = |module: &'d Module| {
            module.segments.iter().map(move |&(low, high)| (low, high, module))
        };
        let mut segments: Vec<_> = modules.iter().flat_map(of).collect();
        segments.sort_unstable_by_key(|segment| segment.0);
        Places { segments }
    }

    /// As Mozilla's stack walker writes what it has no name for.
    fn describe(&self, address: usize) -> String {
        let after = self.segments.partition_point(|segment| segment.0 <= address);
        match after.checked_sub(1).map(|index| self.segments[index]) {
            Some((_, high, module)) if address < high => {
                format!("???[{} +0x{:x}]", module.path, address - module.bias)
            }
            _ => format!("???[0x{address:x}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_mozilla_writes_them() {
        let table = [(0, "A"), (25, "Z"), (26, "a"), (31, "f"), (32, "BA"), (1024, "BAA")];
        for (number, key) in table {
            assert_eq!(base_32(number), key);
        }
    }

    #[test]
    fn a_return_address_is_placed_in_its_module() {
        let module = |path: &str, bias, segments: &[(usize, usize)]| Module {
            path: path.to_owned(),
            bias,
            segments: segments.to_vec(),
            build_id: None,
        };
        let modules = [
            module("/bin/a", 0x5000, &[(0x5000, 0x6000), (0x7000, 0x8000)]),
            module("b.so", 0x9000, &[(0x9100, 0x9200)]),
        ];
        let places = Places::new(&modules);
        let table = [
            (0x5010, "???[/bin/a +0x10]"),
            (0x7fff, "???[/bin/a +0x2fff]"),
            (0x6000, "???[0x6000]"),
            (0x9100, "???[b.so +0x100]"),
            (0x10, "???[0x10]"),
        ];
        for (address, text) in table {
            assert_eq!(places.describe(address), text);
        }
    }
}
