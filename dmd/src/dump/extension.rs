//! Builds the extension of Mozilla's format, under the key `memreport`.

use memreport::{Field, Shared, SkippedField};
use serde_json::json;

use super::keys::Keys;
use super::modules::ModuleMap;
use crate::collect::findings::{Contents, Report, ThreadInfo, WrongReport};
use crate::collect::holders::thread_stacks::StackWord;
use crate::collect::holders::{Holder, StaticWord};
use crate::collect::{Dump, Estimate, Sampled, Sum};
use crate::mem::sys::Module;
use crate::sample::rate::Probability;
use crate::stack::walk::Registers;

/// The numbers of registers in DWARF (psABI of the processor).
const FRAME_POINTER: u16 = if cfg!(target_arch = "aarch64") { 29 } else { 6 };
const STACK_POINTER: u16 = if cfg!(target_arch = "aarch64") { 31 } else { 7 };

/// Returns the value of the extension key.
pub(super) fn fields(dump: &Dump, keys: &mut Keys) -> serde_json::Value {
    let Contents { wrong, notes, sampled, .. } = &dump.contents;
    let wrong: Vec<_> = wrong.iter().map(|wrong| wrong_fields(wrong, dump, keys)).collect();
    let reports: serde_json::Map<_, _> = keys
        .reports
        .iter()
        .filter_map(|(key, report)| Some((key.to_string(), report_fields(dump.report(report)?))))
        .collect();
    let summary = dump.summary;
    let sum = |sum: Sum| json!({ "blocks": sum.blocks, "bytes": sum.bytes });
    let mut fields = json!({
        "version": 1,
        "needs": [],
        "mode": dump.plan.mode.name(),
        "program": std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).ok(),
        "pid": std::process::id(),
        "uptimeMs": u64::try_from(dump.uptime.as_millis()).unwrap_or(u64::MAX),
        "reason": dump.moment,
        "notes": notes,
        "unwinder": dump.unwinder,
        "times": dump.plan.hooks.keeps_times(),
        "stacks": keys.stacks.len(),
        "walkedStacks": dump.tally.walked,
        "truncatedStacks": dump.tally.truncated,
        "lostBlocks": summary.lost_blocks,
        "lostMarks": summary.lost_claims,
        "heapAllocated": summary.heap_allocated,
        "unmeasured": summary.unmeasured,
        "untracked": sum(summary.untracked),
        "beforeTracking": sum(dump.untracked()),
        "reportedUntracked": summary.reported_untracked,
        "trackerBytes": dump.contents.tracker_bytes,
        "sampled": sampled.map(|sampled| sampled_fields(sampled, dump.plan.probability)),
        "bornDuring": sum(summary.allocated_during),
        "modules": module_fields(&dump.modules),
        "threads": thread_fields(&dump.threads),
        "scopes": memreport::__private::all_scopes(),
        "spans": span_fields(),
        "reports": reports,
        "wrong": wrong,
        "features": memreport::__private::FEATURES,
        "measured": measured(dump),
        "skipped": memreport::skipped_fields().iter().map(skipped_fields).collect::<Vec<_>>(),
        "holders": holders(dump, keys),
        "reportedStatics": reported_statics(dump),
    });
    if let Some(scanned) = &dump.contents.scanned {
        fields["statics"] = statics(dump).into();
        fields["frames"] = frames(dump).into();
        for (thread, number) in dump.threads.iter().zip(0_usize..) {
            fields["threads"][number]["pointer"] = format!("{:x}", thread.handle).into();
        }
        fields["needs"] = json!(["scannedBlocks"]);
        fields["scannedBlocks"] = scanned.blocks.len().into();
    }
    fields
}

/// Returns the JSON of the modules.
pub(super) fn module_fields(modules: &[Module]) -> Vec<serde_json::Value> {
    let fields = |module: &Module| {
        json!({
            "path": module.path,
            "buildId": module.build_id,
            "base": format!("{:x}", module.bias),
        })
    };
    modules.iter().map(fields).collect()
}

/// Returns the JSON of the threads.
pub(super) fn thread_fields(threads: &[ThreadInfo]) -> Vec<serde_json::Value> {
    let fields = |thread: &ThreadInfo| {
        let ThreadInfo { number, id, name, .. } = thread;
        json!({ "id": number, "tid": id, "name": name })
    };
    threads.iter().map(fields).collect()
}

/// Returns the scopes that are linked to spans of traces, with the identifiers in hexadecimal.
pub(crate) fn span_fields() -> Vec<serde_json::Value> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let spans = memreport::__private::all_span_ids().into_iter();
    spans.map(|(scope, ids)| json!([scope, hex(&ids.trace), hex(&ids.span)])).collect()
}

/// Returns the estimates of a profile, and its sampling rate.
fn sampled_fields(sampled: Sampled, probability: Option<Probability>) -> serde_json::Value {
    let fields = |estimate: Estimate| {
        json!({
            "blocks": estimate.blocks.round(),
            "bytes": estimate.bytes.round(),
            "error": estimate.error().round(),
        })
    };
    let mut all = json!({
        "all": fields(sampled.all),
        "unreported": fields(sampled.unreported),
        "once": fields(sampled.once),
        "twice": fields(sampled.twice),
    });
    let probability = probability.unwrap_or(Probability::NEVER);
    if let Some(mean) = probability.mean {
        all["sampleBytes"] = mean.get().into();
    }
    if probability.of_block > 0.0 {
        all["sampleProbability"] = probability.of_block.into();
    }
    all
}

/// Returns the reporter and the field of a report.
fn report_fields(report: &Report) -> serde_json::Value {
    match report.field {
        None => json!({ "path": report.path }),
        Some(field) => {
            let mut fields = field_location(field);
            fields["path"] = report.path.as_str().into();
            if field.ownership() == Shared::Here {
                fields["shared"] = "here".into();
            }
            fields
        }
    }
}

/// Returns the declaration of a field.
fn field_location(field: &Field) -> serde_json::Value {
    json!({
        "type": field.owner(),
        "field": field.name(),
        "file": field.file(),
        "line": field.line(),
    })
}

/// Returns the fields that reporters measured in this collection, each once.
fn measured(dump: &Dump) -> Vec<serde_json::Value> {
    let fields = dump.contents.fields.as_slice().iter();
    let mut fields: Vec<_> = fields.filter(|field| field.reason().is_none()).collect();
    let key = |field: &&&Field| (field.file(), field.line(), field.owner(), field.name());
    fields.sort_by_key(key);
    // A constant may have several addresses.
    fields.dedup_by_key(|field| key(&&**field));
    fields.into_iter().map(|field| field_location(field)).collect()
}

/// Returns the declaration of a skipped field, and the reason.
fn skipped_fields(field: &SkippedField) -> serde_json::Value {
    json!({
        "type": format!("{}::{}", field.module, field.owner),
        "field": field.field,
        "file": field.file,
        "line": field.line,
        "reason": field.reason,
    })
}

/// Returns the holders that have keys.
fn holders(dump: &Dump, keys: &Keys) -> serde_json::Map<String, serde_json::Value> {
    let map = ModuleMap::new(&dump.modules);
    let fields = |number: u32| {
        let holder = dump.contents.holders.list().get(number.checked_sub(1)? as usize)?;
        Some(match holder {
            Holder::Skipped(field) => {
                let mut fields = field_location(field);
                fields["reason"] = field.reason().into();
                fields
            }
            Holder::Static(address) => map.fields(*address)?,
        })
    };
    let holders = keys.holders.iter();
    holders.filter_map(|(key, number)| Some((key.to_string(), fields(number)?))).collect()
}

/// Returns the words of statics that point to reported blocks.
fn reported_statics(dump: &Dump) -> Vec<serde_json::Value> {
    let map = ModuleMap::new(&dump.modules);
    let reported = dump.contents.holders.reported.as_slice().iter();
    reported.filter_map(|address| map.fields(*address)).collect()
}

/// Returns the words of statics that lead to blocks. Only scans contain addresses.
fn statics(dump: &Dump) -> Vec<serde_json::Value> {
    let map = ModuleMap::new(&dump.modules);
    let Contents { holders, stacks, .. } = &dump.contents;
    let with_values = |mut fields: serde_json::Value, word: &StaticWord| {
        fields["to"] = format!("{:x}", word.target).into();
        fields["around"] = word.around.map(|word| format!("{word:x}")).to_vec().into();
        fields
    };
    let of_static = |word: &StaticWord| Some(with_values(map.fields(word.address)?, word));
    let of_stack = |StackWord { thread, word }: &StackWord| {
        let name = format!("stack and thread-locals of thread {thread}");
        let offset = format!("{:x}", word.address);
        with_values(json!({ "module": "(process)", "offset": offset, "name": name }), word)
    };
    let statics = holders.statics.as_slice().iter().filter_map(of_static);
    statics.chain(stacks.words.as_slice().iter().map(of_stack)).collect()
}

/// Returns the frames of the thread that made a scan.
fn frames(dump: &Dump) -> Vec<serde_json::Value> {
    let map = ModuleMap::new(&dump.modules);
    let stacks = &dump.contents.stacks;
    let last = stacks.frames.registers.len().saturating_sub(1);
    let hex = |number: usize| format!("{number:x}");
    let fields = |(number, (registers, high)): (usize, (Registers, usize))| {
        let Registers { stack_pointer, frame_pointer, instruction } = registers;
        let mut fields = map.fields(instruction)?;
        fields["thread"] = stacks.thread.into();
        fields["low"] = hex(stack_pointer).into();
        fields["high"] = hex(high).into();
        fields["isFirst"] = (stacks.frames.is_whole && number == last).into();
        let registers = [(FRAME_POINTER, frame_pointer), (STACK_POINTER, stack_pointer)];
        let registers = registers.map(|(number, value)| json!([number, hex(value), null]));
        fields["registers"] = registers.to_vec().into();
        Some(fields)
    };
    stacks.frames().enumerate().filter_map(fields).collect()
}

/// Returns a wrong report and its block.
fn wrong_fields(wrong: &WrongReport, dump: &Dump, keys: &mut Keys) -> serde_json::Value {
    let mut fields = json!({
        "is": wrong.kind.name(),
        "addr": format!("{:x}", wrong.address),
        "claimed": wrong.claimed,
        "rep": keys.reports.key(wrong.report, &mut keys.next).to_string(),
    });
    if let Some((module, _)) = ModuleMap::new(&dump.modules).of(wrong.address) {
        fields["module"] = module.path.as_str().into();
    }
    if let Some(block) = wrong.block {
        fields["req"] = block.requested.into();
        fields["usable"] = block.usable.into();
        let reports = dump.contents.groups.reports(block.reports);
        let of_block: Vec<_> =
            reports.map(|report| keys.reports.key(report, &mut keys.next).to_string()).collect();
        if !of_block.is_empty() {
            fields["blockReps"] = of_block.into();
        }
        if let Some(stack) = Dump::stack(block.site) {
            fields["alloc"] = keys.stacks.key(stack, &mut keys.next).to_string().into();
        }
    }
    fields
}
