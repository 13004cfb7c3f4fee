//! Computes the differences of two files, the second minus the first, as reports.

pub(crate) mod changes;
pub(crate) mod normalise;
pub mod pair;

use super::amount::Amount;
use super::report_tree::refusal::{Refusal, ReportFault};
use hashbrown::HashMap;
use memreport::snapshot::read::{Entry, Field, Header, Sink};
use std::borrow::Cow;
use std::error::Error;

pub use changes::Change;

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
    check_headers(first_header, second_header)?;
    unify(&mut first, &mut second)?;
    for matched in matched(&first, &second)? {
        if let Some(difference) = matched.difference() {
            send(&difference, sink)?;
        }
    }
    Ok(())
}

/// Checks that two files are comparable, whatever their reports are.
fn check_headers(first: &Header, second: &Header) -> Result<(), Refusal> {
    let (a, b) = (&first.usable_size, &second.usable_size);
    if a != b || matches!(a, Field::Composite(_)) {
        return Err(Refusal::Unlike("hasMozMallocUsableSize"));
    }
    Ok(())
}

/// Merges the processes of isolated sites if one of the files has none.
fn unify(first: &mut Side, second: &mut Side) -> Result<(), ReportFault> {
    if first.has_web_isolated != second.has_web_isolated {
        first.forget_isolation()?;
        second.forget_isolation()?;
    }
    Ok(())
}

/// The reports of a process and path in two files, of which at least one has some.
#[derive(Clone, Copy)]
struct Matched<'s> {
    before: Option<&'s Sum>,
    after: Option<&'s Sum>,
}

/// The difference of a process and path, as reports.
struct Difference<'s> {
    /// The reports of the earlier file that has some.
    sum: &'s Sum,
    amount: Amount,
    merged: u32,
    presence: Field<'static>,
}

impl<'s> Matched<'s> {
    fn difference(self) -> Option<Difference<'s>> {
        let Matched { before, after } = self;
        let sum = before.or(after)?;
        let (amount, merged, presence) = match (before, after) {
            (Some(before), Some(after)) => (
                after.amount.minus(&before.amount),
                before.merged.max(after.merged),
                Field::Missing,
            ),
            (Some(_), None) => {
                (Amount::Number(0.0).minus(&sum.amount), sum.merged, Field::Number(1.0))
            }
            _ => (sum.amount.clone(), sum.merged, Field::Number(2.0)),
        };
        Some(Difference { sum, amount, merged, presence })
    }
}

/// Returns the reports of both files by process and path: first all paths of the first file, then
/// the paths that only the second has.
///
/// # Errors
/// The kinds or units of a path differ.
fn matched<'s>(first: &'s Side, second: &'s Side) -> Result<Vec<Matched<'s>>, String> {
    let mut all = Vec::with_capacity(first.reports.len());
    for before in &first.reports {
        let after = second.by_key.get(&before.key).map(|&index| &second.reports[index]);
        if let Some(after) = after {
            if !equal_loosely(&before.kind, &after.kind) {
                return Err(fault_of(before, &ReportFault::OtherKind(after.kind.clone())));
            }
            if !equal_loosely(&before.units, &after.units) {
                return Err(fault_of(before, &ReportFault::OtherUnits(after.units.clone())));
            }
        }
        all.push(Matched { before: Some(before), after });
    }
    let only_second = second.reports.iter().filter(|after| !first.by_key.contains_key(&after.key));
    all.extend(only_second.map(|after| Matched { before: None, after: Some(after) }));
    Ok(all)
}

fn fault_of(sum: &Sum, fault: &ReportFault) -> String {
    format!("{}: {fault}", sum.key.replace(BETWEEN, ": "))
}

/// Sends a difference as reports. A sum of several reports becomes one of the whole amount and
/// others of zero, so that the page counts them.
fn send(
    difference: &Difference<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Difference { sum, amount, merged, presence } = difference;
    if *amount == Amount::Number(0.0) {
        return Ok(());
    }
    let mut parts = sum.key.split(BETWEEN);
    let process = parts.next().unwrap_or("");
    let path = parts.collect::<Vec<_>>().join(",");
    for index in 0..*merged {
        let amount = if index == 0 { field(amount) } else { Field::Number(0.0) };
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
