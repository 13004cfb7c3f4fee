//! Reporters as text.

use super::frame_format::Style;
use super::site::FRAME_INDENT;
use super::trim::without_library;
use crate::read::{Dump, ReportSite, TraceId};

/// Returns the reporter of a block as one line: the path of the report, then the field.
pub(crate) fn reporter(dump: &Dump, trace: Option<TraceId>, style: &Style<'_>) -> String {
    let Some(trace) = trace else { return "an unknown reporter".to_owned() };
    let sites = dump.extension.as_ref().map(|extension| &extension.reports);
    if let Some(site) = sites.and_then(|sites| sites.get(&trace)) {
        return describe_report(site, style);
    }
    let frames = without_library(dump, dump.trace(trace));
    let first = frames.first().map(|parts| style.frame(parts, FRAME_INDENT));
    first.unwrap_or_else(|| "an unknown reporter".to_owned())
}

fn describe_report(site: &ReportSite, style: &Style<'_>) -> String {
    let mut text = site.path.clone();
    let place = match (&site.file, site.line) {
        (Some(file), Some(line)) => format!(" ({}:{line})", style.file(file)),
        _ => String::new(),
    };
    let field = site.field.as_ref().map_or_else(String::new, |field| format!(".{field}"));
    match &site.type_name {
        Some(name) => text.push_str(&format!(": {name}{field}{place}")),
        None => text.push_str(&place),
    }
    text
}
