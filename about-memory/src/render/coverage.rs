//! Writes the coverage of a heap as text and Markdown.

pub(crate) mod json;

use std::io::{self, Write};

use memreport_analysis::analysis::{Coverage, Group, Totals, UNTRACKED, commas, percent, shorten};
use memreport_analysis::read::{FieldPlace, Sum};
use tabled::Table;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

/// The smallest width of a name.
const MIN_NAME: usize = 16;

/// Writes text for a terminal of this width.
pub(crate) fn write_text(
    coverage: &Coverage,
    top: usize,
    columns: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    for line in head(coverage) {
        writeln!(out, "{line}")?;
    }
    for (name, groups) in tables(coverage) {
        let mut table = groups_table(name, groups, coverage.untracked, (top, columns));
        table.with(Style::psql()).modify(Columns::new(1..), Alignment::right());
        writeln!(out)?;
        for line in table.to_string().lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    writeln!(out, "\n{}", fields(coverage))?;
    for field in coverage.skipped.iter().take(top) {
        writeln!(out, "{}", shorten(&format!("  {}", skipped(field)), columns))?;
    }
    rest(coverage.skipped.len(), top, out)?;
    writeln!(out, "\n{}", suggestions_head(coverage))?;
    for (number, memreport_analysis::analysis::Suggestion { text: remedy, bytes, .. }) in
        (1..).zip(coverage.suggestions.iter().take(top))
    {
        let number: usize = number;
        let line = format!("  {number}. {} bytes: {remedy}", commas(*bytes));
        writeln!(out, "{}", wrap(&line, columns))?;
    }
    rest(coverage.suggestions.len(), top, out)
}

/// Writes Markdown.
pub(crate) fn write_markdown(
    coverage: &Coverage,
    top: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "## Coverage\n")?;
    for line in head(coverage).iter().filter(|line| !line.is_empty()) {
        writeln!(out, "{}\n", line.trim())?;
    }
    for (name, groups) in tables(coverage) {
        let mut table = groups_table(name, groups, coverage.untracked, (top, usize::MAX));
        table.with(Style::markdown()).modify(Columns::new(1..), Alignment::right());
        writeln!(out, "{table}\n")?;
    }
    writeln!(out, "{}\n", fields(coverage))?;
    for field in coverage.skipped.iter().take(top) {
        writeln!(out, "* {}", skipped(field))?;
    }
    writeln!(out, "\n{}\n", suggestions_head(coverage))?;
    for (number, memreport_analysis::analysis::Suggestion { text: remedy, bytes, .. }) in
        (1..).zip(coverage.suggestions.iter().take(top))
    {
        let number: usize = number;
        writeln!(out, "{number}. {} bytes: {remedy}", commas(*bytes))?;
    }
    Ok(())
}

fn head(coverage: &Coverage) -> Vec<String> {
    let bytes = |totals: Totals| commas(totals.usable());
    let program = coverage.program.as_deref().and_then(|path| path.rsplit('/').next());
    let mut lines = vec![
        format!(
            "{}: {:.1}% of {} bytes are reported exactly once",
            program.unwrap_or("the program"),
            coverage.score(),
            bytes(coverage.heap)
        ),
        String::new(),
        format!(
            "{} {} = once {} + unreported {} + twice or more {}{}",
            if coverage.is_sampled { "heap by estimate" } else { "heap-allocated" },
            bytes(coverage.heap),
            bytes(coverage.once),
            bytes(coverage.unreported),
            bytes(coverage.twice),
            match coverage.untracked.bytes {
                0 => String::new(),
                untracked => format!(" + untracked {}", commas(untracked.into())),
            }
        ),
        match coverage.under_reported {
            0 => "score = once / heap-allocated".to_owned(),
            left_out => format!(
                "score = (once − {} that partial reports leave out) / heap-allocated",
                commas(left_out)
            ),
        },
    ];
    if coverage.is_sampled {
        lines.push("All figures are estimates from a sample.".to_owned());
    }
    if coverage.untracked.blocks > 0 {
        let bytes = commas(coverage.untracked.bytes.into());
        lines.push(format!(
            "The {bytes} untracked bytes are from before tracking began or while it was off."
        ));
    }
    lines
}

fn tables(coverage: &Coverage) -> [(&'static str, &[Group]); 3] {
    [("Crate", &coverage.crates), ("Type", &coverage.types), ("Reported by", &coverage.reporters)]
}

fn groups_table(
    name: &str,
    groups: &[Group],
    untracked: Sum,
    (top, columns): (usize, usize),
) -> Table {
    let tracked: i128 = groups.iter().map(|group| group.all.usable()).sum();
    let all = tracked + i128::from(untracked.bytes);
    let figures = |group: &Group| {
        let [bytes, unreported, twice] =
            [group.all, group.unreported, group.twice].map(|totals| totals.usable());
        [
            commas(bytes),
            format!("{:.1}%", percent(bytes, all)),
            format!("{:.1}%", percent(bytes - unreported - twice, bytes)),
            commas(unreported),
            commas(twice),
        ]
    };
    let heads = ["Bytes", "Share", "Once", "Unreported", "Twice"].map(str::to_owned);
    let shown: Vec<[String; 5]> = groups.iter().take(top).map(figures).collect();
    let width = |at: usize| {
        let cells = shown.iter().chain([&heads]).map(|row| row[at].chars().count());
        // A blank on each side, and a line.
        cells.max().unwrap_or(0) + 3
    };
    let room = columns.saturating_sub((0..heads.len()).map(width).sum::<usize>() + 2).max(MIN_NAME);
    let mut table = Builder::default();
    let row = |name: &str, figures: &[String; 5]| {
        std::iter::once(shorten(name, room)).chain(figures.iter().cloned()).collect::<Vec<_>>()
    };
    table.push_record(row(name, &heads));
    for (group, figures) in groups.iter().zip(&shown) {
        table.push_record(row(&group.name, figures));
    }
    if groups.len() > top {
        let more = format!("… and {} more", commas((groups.len() - top) as i128));
        table.push_record([shorten(&more, room)]);
    }
    if untracked.blocks > 0 {
        let (bytes, share) = (untracked.bytes.into(), percent(untracked.bytes.into(), all));
        table.push_record([shorten(UNTRACKED, room), commas(bytes), format!("{share:.1}%")]);
    }
    table.build()
}

fn fields(coverage: &Coverage) -> String {
    let count = |number: usize| commas(number as i128);
    let (measured, skipped) = (count(coverage.measured.len()), count(coverage.skipped.len()));
    let end = if coverage.skipped.is_empty() { "." } else { ":" };
    format!("Fields: {measured} measured, {skipped} skipped{end}")
}

fn skipped(field: &FieldPlace) -> String {
    let FieldPlace { type_name, field, file, line, reason, .. } = field;
    format!("{type_name}.{field} ({file}:{line}): {}", reason.as_deref().unwrap_or_default())
}

fn suggestions_head(coverage: &Coverage) -> &'static str {
    if coverage.suggestions.is_empty() {
        "No suggestion for the rest."
    } else {
        "What would help most:"
    }
}

fn rest(all: usize, top: usize, out: &mut dyn Write) -> io::Result<()> {
    if all > top { writeln!(out, "  … and {} more", commas((all - top) as i128)) } else { Ok(()) }
}

/// Breaks a line between words, and indents the rest.
fn wrap(line: &str, columns: usize) -> String {
    const INDENT: &str = "     ";
    let indent = line.len() - line.trim_start().len();
    let mut lines = vec![line[..indent].to_owned()];
    let mut is_first = true;
    for word in line.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if !is_first && last + 1 + word.chars().count() > columns {
            lines.push(INDENT.to_owned());
            is_first = true;
        }
        if let Some(last) = lines.last_mut() {
            last.push_str(if is_first { "" } else { " " });
            last.push_str(word);
        }
        is_first = false;
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use memreport_analysis::analysis::{Coverage, ExplainOptions, coverage};
    use memreport_analysis::read::{Sum, read_slice};

    use super::{json, write_markdown, write_text};

    const DUMP: &str = r##"{"version":5,"invocation":{"dmdEnvVar":"1","mode":"dark-matter"},
    "memreport":{"version":1,"program":"/usr/bin/subject","reports":{
        "R":{"path":"explicit/index","type":"subject::Index","field":"words","file":"src/main.rs","line":12},
        "S":{"path":"explicit/store"}},
      "wrong":[{"is":"partial","addr":"5610","claimed":64,"rep":"R","num":1,"usable":112,"req":100,"alloc":"A"}],
      "measured":[{"type":"subject::Index","field":"words","file":"src/main.rs","line":12}],
      "skipped":[{"type":"subject::Index","field":"cache","file":"src/main.rs","line":14,"reason":"made again when needed, from the words that are kept"}],
      "holders":{"H":{"module":"/usr/bin/subject","offset":"10","name":"subject::CACHE"}}},
    "blockList":[{"req":1000,"slop":24,"alloc":"A","num":2,"heldBy":"H"},{"req":40,"alloc":"B","reps":["R","S"]},
      {"req":9000,"alloc":"B","reps":["R"]},{"req":112,"alloc":"A","reps":["R"]}],
    "traceTable":{"A":["i","m"],"B":["m"],"R":["r"],"S":["s"]},
    "frameTable":{"i":"#00: subject::Lexicon::intern (/s/src/lexicon.rs:41)","m":"#00: subject::main (/s/src/main.rs:3)",
      "r":"#00: Index.words","s":"#00: explicit/store"}}"##;

    fn of_dump() -> Coverage {
        coverage(&read_slice(DUMP.as_bytes()).unwrap(), &ExplainOptions::default()).unwrap()
    }

    fn text(columns: usize) -> String {
        let mut out = Vec::new();
        write_text(&of_dump(), 2, columns, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn it_fits_the_terminal() {
        assert_snapshot!(text(80), @r#"
subject: 80.9% of 11,200 bytes are reported exactly once

heap-allocated 11,200 = once 9,112 + unreported 2,048 + twice or more 40
score = (once − 48 that partial reports leave out) / heap-allocated

 Crate   |  Bytes |  Share |  Once | Unreported | Twice
---------+--------+--------+-------+------------+-------
 subject | 11,200 | 100.0% | 81.4% |      2,048 |    40

 Type                              | Bytes | Share |  Once | Unreported | Twice
-----------------------------------+-------+-------+-------+------------+-------
 type unknown, al…in subject::main | 9,040 | 80.7% | 99.6% |          0 |    40
 type unknown, al…:Lexicon::intern | 2,160 | 19.3% |  5.2% |      2,048 |     0

 Reported by          | Bytes | Share |   Once | Unreported | Twice
----------------------+-------+-------+--------+------------+-------
 subject::Index.words | 9,112 | 81.4% | 100.0% |          0 |     0
 (not reported)       | 2,048 | 18.3% |   0.0% |      2,048 |     0
 … and 1 more         |       |       |        |            |

Fields: 1 measured, 1 skipped:
  subject::Index.cache (src/main.rs:14):…en needed, from the words that are kept

What would help most:
  1. 2,048 bytes: no reporter reaches static subject::CACHE: register one
  2. 48 bytes: subject::Index.words claims 64 bytes of a block made with 100:
     give Ops::block the layout that it was made with
  … and 1 more
"#);
        for columns in [80, 200] {
            let text = text(columns);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(columns), "{text}");
        }
    }

    #[test]
    fn it_is_a_page_and_an_object() {
        let mut out = Vec::new();
        write_markdown(&of_dump(), 2, &mut out).unwrap();
        assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
## Coverage

subject: 80.9% of 11,200 bytes are reported exactly once

heap-allocated 11,200 = once 9,112 + unreported 2,048 + twice or more 40

score = (once − 48 that partial reports leave out) / heap-allocated

| Crate   |  Bytes |  Share |  Once | Unreported | Twice |
|---------|--------|--------|-------|------------|-------|
| subject | 11,200 | 100.0% | 81.4% |      2,048 |    40 |

| Type                                                | Bytes | Share |  Once | Unreported | Twice |
|-----------------------------------------------------|-------|-------|-------|------------|-------|
| type unknown, allocated in subject::main            | 9,040 | 80.7% | 99.6% |          0 |    40 |
| type unknown, allocated in subject::Lexicon::intern | 2,160 | 19.3% |  5.2% |      2,048 |     0 |

| Reported by          | Bytes | Share |   Once | Unreported | Twice |
|----------------------|-------|-------|--------|------------|-------|
| subject::Index.words | 9,112 | 81.4% | 100.0% |          0 |     0 |
| (not reported)       | 2,048 | 18.3% |   0.0% |      2,048 |     0 |
| … and 1 more         |       |       |        |            |       |

Fields: 1 measured, 1 skipped:

* subject::Index.cache (src/main.rs:14): made again when needed, from the words that are kept

What would help most:

1. 2,048 bytes: no reporter reaches static subject::CACHE: register one
2. 48 bytes: subject::Index.words claims 64 bytes of a block made with 100: give Ops::block the layout that it was made with
"#);

        let mut out = Vec::new();
        json::write(&of_dump(), &mut out).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["heap"]["bytes"], 2048 + 40 + 9000 + 112);
        assert_eq!(value["exactlyOnceBytes"], 9112 - 48);
        assert_eq!(value["skipped"][0]["field"], "cache");
        assert_eq!(
            value["remedies"][0]["remedy"],
            "no reporter reaches static subject::CACHE: register one"
        );
    }

    #[test]
    fn untracked_blocks_are_named_if_there_are_any() {
        let with = |untracked| {
            let (mut coverage, mut out) = (of_dump(), Vec::new());
            coverage.untracked = untracked;
            write_text(&coverage, 2, 80, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let sentence = "The 1,500 untracked bytes are from before tracking began";
        assert!(with(Sum { blocks: 3, bytes: 1500 }).contains(sentence));
        assert!(!with(Sum::default()).contains("untracked"));
    }
}
