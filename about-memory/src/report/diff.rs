//! Computes the differences of two files, the second minus the first, as reports.

pub(crate) mod normalise;
pub mod pair;

use super::amount::Amount;
use super::filter::Filter;
use super::numbers::Unit;
use super::report_tree::Presence;
use super::report_tree::node;
use super::report_tree::refusal::{Refusal, ReportFault};
use hashbrown::HashMap;
use memreport::snapshot::read::{Entry, Field, Header, Sink};
use std::borrow::Cow;
use std::error::Error;

/// Separates process and path in a key, as in Firefox. A path that contains it is split in the same
/// way.
const BETWEEN: &str = "^:^:^";

/// The most different paths of a file.
const MOST_PATHS: usize = 1 << 21;

/// The reports of one of two files, added up by process and path.
#[derive(Debug, Default)]
pub struct Side {
    reports: Vec<Sum>,
    by_key: HashMap<String, usize>,
    has_web_isolated: bool,
}

/// The sum of all reports of a process and path.
#[derive(Clone, Debug)]
struct Sum {
    key: String,
    kind: Field<'static>,
    units: Field<'static>,
    amount: Amount,
    description: String,
    segments: Option<Vec<String>>,
    merged: u32,
}

impl Sink for Side {
    fn restart(&mut self) {
        *self = Side::default();
    }

    fn report(&mut self, entry: &Entry<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let fields = [
            ("process", &entry.process),
            ("kind", &entry.kind),
            ("units", &entry.units),
            ("amount", &entry.amount),
            ("description", &entry.description),
        ];
        if let Some((name, _)) = fields.into_iter().find(|(_, field)| **field == Field::Missing) {
            return Err(ReportFault::Missing(name).into());
        }
        let Field::Text(process) = &entry.process else {
            return Err(ReportFault::Process(entry.process.clone().into_owned()).into());
        };
        self.has_web_isolated |= process.starts_with("webIsolated");
        let key =
            format!("{}{BETWEEN}{}", normalise::process(process), normalise::path(entry.path));
        let sum = Sum {
            key,
            kind: entry.kind.clone().into_owned(),
            units: entry.units.clone().into_owned(),
            amount: Amount::from(&entry.amount),
            description: if let Field::Text(text) = &entry.description {
                text.to_string()
            } else {
                String::new()
            },
            segments: entry.segments.map(<[String]>::to_vec),
            merged: 1,
        };
        Ok(self.add(sum)?)
    }
}

impl Side {
    fn add(&mut self, sum: Sum) -> Result<(), ReportFault> {
        let Some(&index) = self.by_key.get(&sum.key) else {
            if self.reports.len() >= MOST_PATHS {
                return Err(ReportFault::TooManyPaths { limit: MOST_PATHS });
            }
            self.by_key.insert(sum.key.clone(), self.reports.len());
            self.reports.push(sum);
            return Ok(());
        };
        let old = &mut self.reports[index];
        if !equal_loosely(&old.kind, &sum.kind) {
            return Err(ReportFault::OtherKind(sum.kind));
        }
        if !equal_loosely(&old.units, &sum.units) {
            return Err(ReportFault::OtherUnits(sum.units));
        }
        old.amount.add(&sum.amount);
        old.merged += sum.merged;
        Ok(())
    }

    /// Merges the processes of isolated sites. Used if the other file has none: Firefox can run
    /// them in one process.
    fn forget_isolation(&mut self) -> Result<(), ReportFault> {
        for mut sum in std::mem::take(self).reports {
            if let Some((process, path)) = sum.key.split_once(BETWEEN)
                && process.starts_with("webIsolated")
            {
                sum.key = format!("web (pid NNN){BETWEEN}{path}");
            }
            self.add(sum)?;
        }
        Ok(())
    }
}

/// Compares two files, and passes a report for every difference to `sink`.
///
/// # Errors
/// `sink` refuses a report, or the files contradict each other.
pub fn compare(
    (mut first, first_header): (Side, &Header),
    (mut second, second_header): (Side, &Header),
    sink: &mut dyn Sink,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (a, b) = (&first_header.usable_size, &second_header.usable_size);
    if a != b || matches!(a, Field::Composite(_)) {
        return Err(Refusal::Unlike("hasMozMallocUsableSize").into());
    }
    if first.has_web_isolated != second.has_web_isolated {
        first.forget_isolation()?;
        second.forget_isolation()?;
    }
    let mut in_both = vec![false; second.reports.len()];
    for sum in first.reports {
        let other = second.by_key.get(&sum.key).map(|&index| {
            in_both[index] = true;
            &second.reports[index]
        });
        let mut amount = Amount::Number(0.0).minus(&sum.amount);
        let mut merged = sum.merged;
        if let Some(other) = other {
            if !equal_loosely(&sum.kind, &other.kind) {
                return Err(fault_of(&sum, &ReportFault::OtherKind(other.kind.clone())).into());
            }
            if !equal_loosely(&sum.units, &other.units) {
                return Err(fault_of(&sum, &ReportFault::OtherUnits(other.units.clone())).into());
            }
            amount = other.amount.minus(&sum.amount);
            merged = merged.max(other.merged);
        }
        let presence = if other.is_some() { Field::Missing } else { Field::Number(1.0) };
        send(&Sum { amount, merged, ..sum }, &presence, sink)?;
    }
    for (sum, _) in second.reports.iter().zip(in_both).filter(|(_, in_both)| !in_both) {
        send(sum, &Field::Number(2.0), sink)?;
    }
    Ok(())
}

/// A path whose amount differs.
#[derive(Clone, Debug)]
pub struct Change {
    /// The process, without its number.
    pub process: String,
    /// The path as in the file.
    pub path: String,
    /// The unit of both amounts.
    pub unit: Unit,
    /// The amount in the first file.
    pub before: Amount,
    /// The amount in the second file.
    pub after: Amount,
    /// The files that contain the path.
    pub presence: Presence,
}

impl Change {
    /// Returns the increase.
    pub fn difference(&self) -> f64 {
        self.after.number() - self.before.number()
    }
}

/// Returns the differences by path, the largest first.
///
/// # Errors
/// The files contradict each other.
pub fn changes(
    first: &Side,
    second: &Side,
    filter: &Filter,
) -> Result<Vec<Change>, Box<dyn Error + Send + Sync>> {
    let mut changes = Vec::new();
    let nothing = Amount::Number(0.0);
    for before in &first.reports {
        let after = second.by_key.get(&before.key).map(|&index| &second.reports[index]);
        if let Some(after) = after.filter(|after| !equal_loosely(&after.units, &before.units)) {
            return Err(fault_of(before, &ReportFault::OtherUnits(after.units.clone())).into());
        }
        let presence = if after.is_some() { Presence::Both } else { Presence::First };
        changes.push(change(
            before,
            &before.amount,
            after.map_or(&nothing, |after| &after.amount),
            presence,
        ));
    }
    let only_second = second.reports.iter().filter(|after| !first.by_key.contains_key(&after.key));
    changes
        .extend(only_second.map(|after| change(after, &nothing, &after.amount, Presence::Second)));
    changes.retain(|change| change.difference() != 0.0 && filter.matches(&change.path));
    changes.sort_by(|a, b| {
        let by_size = b.difference().abs().total_cmp(&a.difference().abs());
        by_size.then_with(|| (&a.process, &a.path).cmp(&(&b.process, &b.path)))
    });
    Ok(changes)
}

fn change(sum: &Sum, before: &Amount, after: &Amount, presence: Presence) -> Change {
    let (process, path) = sum.key.split_once(BETWEEN).unwrap_or(("", &sum.key));
    Change {
        process: process.to_owned(),
        path: path.to_owned(),
        unit: node::unit(&sum.units),
        before: before.clone(),
        after: after.clone(),
        presence,
    }
}

fn fault_of(sum: &Sum, fault: &ReportFault) -> String {
    format!("{}: {fault}", sum.key.replace(BETWEEN, ": "))
}

/// Sends a difference as reports. A sum of several reports becomes one of the whole amount and
/// others of zero, so that the page counts them.
fn send(
    sum: &Sum,
    presence: &Field<'static>,
    sink: &mut dyn Sink,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    if sum.amount == Amount::Number(0.0) {
        return Ok(());
    }
    let mut parts = sum.key.split(BETWEEN);
    let process = parts.next().unwrap_or("");
    let path = parts.collect::<Vec<_>>().join(",");
    for index in 0..sum.merged {
        let amount = if index == 0 { field(&sum.amount) } else { Field::Number(0.0) };
        sink.report(&Entry {
            index: 0,
            process: Field::Text(Cow::Borrowed(process)),
            path: &path,
            kind: sum.kind.clone(),
            units: sum.units.clone(),
            amount,
            description: Field::Text(Cow::Borrowed(&sum.description)),
            presence: presence.clone(),
            segments: sum.segments.as_deref(),
        })?;
    }
    Ok(())
}

fn field(amount: &Amount) -> Field<'_> {
    match amount {
        Amount::Undefined => Field::Missing,
        Amount::Null => Field::Null,
        Amount::Bool(value) => Field::Bool(*value),
        Amount::Number(value) => Field::Number(*value),
        Amount::Text(text) => Field::Text(Cow::Borrowed(text)),
        Amount::Object(text) => Field::Composite(Cow::Borrowed(text)),
    }
}

/// Compares as JavaScript's `==`.
fn equal_loosely(a: &Field<'_>, b: &Field<'_>) -> bool {
    match (a, b) {
        (Field::Null | Field::Missing, _) | (_, Field::Null | Field::Missing) => a == b,
        (Field::Composite(_), Field::Composite(_)) => false,
        (Field::Text(a) | Field::Composite(a), Field::Text(b) | Field::Composite(b)) => a == b,
        _ => Amount::from(a).number() == Amount::from(b).number(),
    }
}

#[cfg(test)]
mod tests;
