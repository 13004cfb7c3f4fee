//! Writes the verdict on a budget as a table.

use crate::report::budget::Verdict;
use crate::report::report_tree::shown_name;
use std::io::{self, Write};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

/// Writes the paths over their ceilings.
pub(crate) fn write(verdict: &Verdict, out: &mut dyn Write) -> io::Result<()> {
    let compared = verdict.compared;
    if verdict.over.is_empty() {
        return writeln!(
            out,
            "within budget: {compared} {} compared",
            if compared == 1 { "path" } else { "paths" }
        );
    }
    let mut table = Builder::default();
    table.push_record(["Process", "Path", "Amount", "Ceiling", "Over by", ""]);
    for over in &verdict.over {
        let excess = over.amount - over.ceiling;
        let share = numbers_share(excess, over.ceiling);
        table.push_record([
            over.process.clone(),
            shown_name(&over.path).into_owned(),
            over.print(over.amount),
            over.print(over.ceiling),
            over.print(excess),
            share,
        ]);
    }
    let mut table = table.build();
    table.with(Style::psql()).modify(Columns::new(2..), Alignment::right());
    writeln!(out, "{table}\n")?;
    let count = verdict.over.len();
    writeln!(
        out,
        "over budget: {count} of {compared} {}",
        if compared == 1 { "path" } else { "paths" }
    )
}

fn numbers_share(excess: f64, ceiling: f64) -> String {
    if ceiling > 0.0 { format!("+{:.1}%", 100.0 * excess / ceiling) } else { String::new() }
}
