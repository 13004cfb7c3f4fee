//! What a dump says beyond Mozilla's format, under the key `memreport`.

use memreport::{Field, Shared, SkippedField};
use serde_json::json;

use super::{Keys, Places};
use crate::collect::findings::{Contents, Report, WrongReport};
use crate::collect::holders::{Holder, StaticWord};
use crate::collect::{Dump, Estimate, Sampled, Sum};
use crate::mem::sys::Module;
use crate::sample::plan;
use crate::sample::rate::Probability;

/// The extension key.
pub(super) fn own_fields(dump: &Dump, keys: &mut Keys) -> serde_json::Value {
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
        "mode": dump.mode.name(),
        "program": std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).ok(),
        "pid": std::process::id(),
        "uptimeMs": u64::try_from(dump.uptime.as_millis()).unwrap_or(u64::MAX),
        "reason": dump.moment,
        "notes": notes,
        "unwinder": dump.unwinder,
        "times": dump.has_times,
        "stacks": keys.stacks.len(),
        "walkedStacks": dump.tally.walked,
        "truncatedStacks": dump.tally.truncated,
        "lostBlocks": summary.lost_blocks,
        "lostMarks": summary.lost_marks,
        "heapAllocated": summary.heap_allocated,
        "unmeasured": summary.unmeasured,
        "untracked": sum(summary.untracked),
        "reportedUntracked": summary.reported_untracked,
        "trackerBytes": dump.contents.tracker_bytes,
        "sampled": sampled.map(sampled_fields),
        "bornDuring": sum(summary.allocated_during),
        "modules": module_fields(&dump.modules),
        "threads": thread_fields(&dump.threads),
        "scopes": memreport::__private::all_scopes(),
        "reports": reports,
        "wrong": wrong,
        "features": memreport::__private::FEATURES,
        "measured": measured(dump),
        "skipped": memreport::skipped_fields().iter().map(skipped_fields).collect::<Vec<_>>(),
        "holders": holders(dump, keys),
        "reportedStatics": reported_statics(dump),
    });
    if dump.contents.scanned.is_some() {
        fields["statics"] = statics(dump).into();
    }
    fields
}

pub(super) fn module_fields(modules: &[Module]) -> Vec<serde_json::Value> {
    let fields = |module: &Module| json!({ "path": module.path, "buildId": module.build_id, "base": format!("{:x}", module.bias) });
    modules.iter().map(fields).collect()
}

/// Of threads by number, kernel's number and name.
pub(super) fn thread_fields(threads: &[(u32, u32, Option<String>)]) -> Vec<serde_json::Value> {
    let fields = |(number, id, name): &(u32, u32, Option<String>)| json!({ "id": number, "tid": id, "name": name });
    threads.iter().map(fields).collect()
}

fn sampled_fields(sampled: Sampled) -> serde_json::Value {
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
    let probability = plan::sampled_probability().unwrap_or(Probability::NEVER);
    if let Some(mean) = probability.mean {
        all["sampleBytes"] = mean.get().into();
    }
    if probability.of_block > 0.0 {
        all["sampleProbability"] = probability.of_block.into();
    }
    all
}

fn report_fields(report: &Report) -> serde_json::Value {
    match report.field {
        None => json!({ "path": report.path }),
        Some(field) => {
            let mut fields = place_of(field);
            fields["path"] = report.path.as_str().into();
            if field.ownership() == Shared::Here {
                fields["shared"] = "here".into();
            }
            fields
        }
    }
}

fn place_of(field: &Field) -> serde_json::Value {
    json!({
        "type": field.owner(),
        "field": field.name(),
        "file": field.file(),
        "line": field.line(),
    })
}

/// The fields that were measured in this collection, each once.
fn measured(dump: &Dump) -> Vec<serde_json::Value> {
    let fields = dump.contents.fields.as_slice().iter();
    let mut fields: Vec<_> = fields.filter(|field| field.reason().is_none()).collect();
    let key = |field: &&&Field| (field.file(), field.line(), field.owner(), field.name());
    fields.sort_by_key(key);
    // One constant may have several addresses.
    fields.dedup_by_key(|field| key(&&**field));
    fields.into_iter().map(|field| place_of(field)).collect()
}

fn skipped_fields(field: &SkippedField) -> serde_json::Value {
    json!({
        "type": format!("{}::{}", field.module, field.owner),
        "field": field.field,
        "file": field.file,
        "line": field.line,
        "reason": field.reason,
    })
}

fn holders(dump: &Dump, keys: &Keys) -> serde_json::Map<String, serde_json::Value> {
    let places = Places::new(&dump.modules);
    let fields = |number: u32| {
        let holder = dump.contents.holders.list().get(number.checked_sub(1)? as usize)?;
        Some(match holder {
            Holder::Skipped(field) => {
                let mut fields = place_of(field);
                fields["reason"] = field.reason().into();
                fields
            }
            Holder::Static(address) => places.fields(*address)?,
        })
    };
    let holders = keys.holders.iter();
    holders.filter_map(|(key, number)| Some((key.to_string(), fields(number)?))).collect()
}

fn reported_statics(dump: &Dump) -> Vec<serde_json::Value> {
    let places = Places::new(&dump.modules);
    let reported = dump.contents.holders.reported.as_slice().iter();
    reported.filter_map(|address| places.fields(*address)).collect()
}

/// The words of statics that lead to blocks: addresses, as only a scan has them.
fn statics(dump: &Dump) -> Vec<serde_json::Value> {
    let places = Places::new(&dump.modules);
    let words = dump.contents.holders.statics.as_slice().iter();
    let fields = |word: &StaticWord| {
        let mut fields = places.fields(word.at)?;
        fields["to"] = format!("{:x}", word.to).into();
        Some(fields)
    };
    words.filter_map(fields).collect()
}

fn wrong_fields(wrong: &WrongReport, dump: &Dump, keys: &mut Keys) -> serde_json::Value {
    let mut fields = json!({
        "is": wrong.is.name(),
        "addr": format!("{:x}", wrong.address),
        "claimed": wrong.claimed,
        "rep": keys.reports.key(wrong.report, &mut keys.next).to_string(),
    });
    if let Some((module, _)) = Places::new(&dump.modules).of(wrong.address) {
        fields["module"] = module.path.as_str().into();
    }
    if let Some(block) = wrong.block {
        fields["req"] = block.requested.into();
        fields["usable"] = block.usable.into();
        let reports = dump.contents.kinds.reports(block.reports);
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
