//! Records as text: byte for byte what dmd.py prints below its two heading lines.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::addresses::Addresses;
use super::class::Class;
use super::digest::{Digest, Section};
use super::order::{Filter, SortBy};
use super::record::{Record, SizeCount};
use super::stacks::{StackId, Stacks};
use super::totals::Totals;
use crate::analysis::number::{commas, counted, percent};
use crate::read::Mode;

/// The number of the record at which a section stops.
const MAX_RECORD: usize = 1_000;

const SEPARATOR: &str = "#-----------------------------------------------------------------";

/// The options of the text.
#[derive(Debug, Default, Clone)]
pub struct TextOptions {
    /// The second line, after `# `, where dmd.py prints its command line.
    pub heading: String,
    /// The order of records.
    pub sort_by: SortBy,
    /// The filters; a record is printed if all of them keep it.
    pub filters: Vec<Filter>,
    /// True if stacks with three frames of DMD itself are printed as one fixed frame.
    pub filter_stacks_for_testing: bool,
}

/// Writes `digest` as dmd.py does.
///
/// # Errors
///
/// If writing fails.
pub fn write_text(
    digest: &Digest,
    stacks: &Stacks,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let view = View { digest, stacks, options };
    writeln!(out, "{SEPARATOR}\n# {}\n", options.heading)?;
    view.invocations(out)?;
    let mut shown = Vec::new();
    for section in &digest.sections {
        shown.push((section.class, view.section(section, out)?));
    }
    writeln!(out, "{SEPARATOR}\n\nSummary {{")?;
    view.summary(&shown, out)?;
    writeln!(out, "}}\n")
}

struct View<'a> {
    digest: &'a Digest,
    stacks: &'a Stacks,
    options: &'a TextOptions,
}

/// The position in a section: the usable bytes printed so far, and in the whole section.
struct Progress {
    section: i128,
    cumulative: i128,
    /// The number of the record, from 1; `places` is the number of all records.
    place: usize,
    places: usize,
}

impl View<'_> {
    fn invocations(&self, out: &mut dyn Write) -> io::Result<()> {
        let variables = &self.digest.dmd_env_vars;
        for (at, variable) in variables.iter().enumerate() {
            let number = if variables.len() > 1 { format!(" {}", at + 1) } else { String::new() };
            writeln!(out, "Invocation{number} {{")?;
            match variable {
                None => writeln!(out, "  $DMD is undefined")?,
                Some(value) => writeln!(out, "  $DMD = '{value}'")?,
            }
            let mode = match self.digest.mode {
                Mode::Cumulative => "cumulative",
                Mode::DarkMatter => "dark-matter",
                Mode::Live | Mode::Scan => "live",
            };
            writeln!(out, "  Mode = '{mode}'\n}}\n")?;
        }
        Ok(())
    }

    /// Writes a section and returns the totals of the records that the filters keep.
    fn section(&self, section: &Section, out: &mut dyn Write) -> io::Result<Totals> {
        writeln!(out, "{SEPARATOR}\n")?;
        let mut records: Vec<&Record> = section.records.iter().collect();
        if !self.options.filters.is_empty() {
            records.retain(|record| {
                let lines = self.stack(record.alloc);
                self.options.filters.iter().all(|filter| filter.keeps(&lines))
            });
        }
        let totals = records.iter().fold(Totals::default(), |sum, record| sum.plus(&record.totals));
        if section.records.is_empty() {
            writeln!(out, "# no {} heap blocks\n", section.class.name())?;
        }
        let places = section.records.len();
        let mut progress = Progress { section: totals.usable(), cumulative: 0, place: 0, places };
        for record in self.options.sort_by.first(records, MAX_RECORD) {
            progress.place += 1;
            if progress.place == MAX_RECORD {
                let stop = commas(MAX_RECORD as i128);
                writeln!(
                    out,
                    "# {}: stopping after {stop} heap block records\n",
                    section.class.heading()
                )?;
                break;
            }
            progress.cumulative = progress.cumulative.saturating_add(record.totals.usable());
            self.record(section.class, record, &progress, out)?;
        }
        Ok(totals)
    }

    fn record(
        &self,
        class: Class,
        record: &Record,
        progress: &Progress,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Totals { blocks, req, slop } = record.totals;
        let usable = record.totals.usable();
        let plural = if blocks == 1 { "" } else { "s" };
        let (place, places) = (commas(progress.place as i128), commas(progress.places as i128));
        writeln!(out, "{} {{", class.heading())?;
        writeln!(
            out,
            "  {} block{plural} in heap block record {place} of {places}",
            commas(blocks)
        )?;
        if !record.addrs.is_empty() {
            write_addresses(&record.addrs, out)?;
        }
        writeln!(
            out,
            "  {} bytes ({} requested / {} slop)",
            commas(usable),
            commas(req),
            commas(slop)
        )?;
        write_sizes(record, out)?;
        let heap = self.digest.heap.usable();
        let cumulative = percent(progress.cumulative, heap);
        writeln!(out, "  {:.2}% of the heap ({cumulative:.2}% cumulative)", percent(usable, heap))?;
        if self.digest.mode == Mode::DarkMatter {
            let share = percent(usable, progress.section);
            let cumulative = percent(progress.cumulative, progress.section);
            writeln!(out, "  {share:.2}% of {} ({cumulative:.2}% cumulative)", class.name())?;
        }
        self.write_stack("Allocated at", record.alloc, out)?;
        for (at, &report) in self.stacks.list(record.reports).iter().enumerate() {
            self.write_stack(
                if at == 0 { "Reported at" } else { "Reported again at" },
                report,
                out,
            )?;
        }
        writeln!(out, "}}\n")
    }

    fn write_stack(&self, heading: &str, stack: StackId, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "  {heading} {{")?;
        for line in self.stack(stack) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "  }}")
    }

    /// Returns the lines of a stack, numbered from 1 instead of the dump's `#00`.
    fn stack(&self, stack: StackId) -> Vec<String> {
        if self.options.filter_stacks_for_testing {
            let of_dmd = self.stacks.frames(stack).filter(|frame| frame.contains("DMD")).count();
            if of_dmd >= 3 {
                return vec!["    #01: ... DMD.cpp ...".to_owned()];
            }
        }
        let frames = self.stacks.frames(stack).zip(1..);
        frames
            .map(|(frame, number): (&str, usize)| {
                format!("    #{number:02}{}", after_number(frame))
            })
            .collect()
    }

    fn summary(&self, shown: &[(Class, Totals)], out: &mut dyn Write) -> io::Result<()> {
        if self.digest.mode != Mode::DarkMatter {
            let totals = shown.iter().fold(Totals::default(), |sum, (_, totals)| sum.plus(totals));
            return writeln!(
                out,
                "  Total: {} bytes in {}",
                commas(totals.usable()),
                counted(totals.blocks, "block")
            );
        }
        let heap = self.digest.heap;
        let mut line = |label: &str, totals: Totals, shares: (f64, f64)| {
            let (bytes, blocks) = (commas(totals.usable()), commas(totals.blocks));
            let (of_bytes, of_blocks) = shares;
            writeln!(
                out,
                "  {label:15} {bytes:>12} bytes ({of_bytes:6.2}%) in {blocks:>7} blocks ({of_blocks:6.2}%)"
            )
        };
        line("Total:", heap, (100.0, 100.0))?;
        for class in [Class::Unreported, Class::OnceReported, Class::TwiceReported] {
            let of_class = shown.iter().filter(|(other, _)| *other == class);
            let totals = of_class.fold(Totals::default(), |sum, (_, totals)| sum.plus(totals));
            let bytes = percent(totals.usable(), heap.usable());
            let blocks = percent(totals.blocks, heap.blocks);
            line(&format!("{}:", class.heading()), totals, (bytes, blocks))?;
        }
        Ok(())
    }
}

/// Returns the text of a frame after its `#00`.
fn after_number(frame: &str) -> &str {
    let end = frame.char_indices().nth(3).map_or(frame.len(), |(at, _)| at);
    &frame[end..]
}

/// Writes addresses in the order of their texts, as dmd.py sorts them.
fn write_addresses(addresses: &Addresses, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "  block addresses: ")?;
    // Those of a scan are in order already, as long as they have equally many digits.
    if addresses.iter().is_sorted_by_key(textual) {
        write_list(addresses.iter(), out)?;
    } else {
        let mut sorted: Vec<u64> = addresses.iter().collect();
        sorted.sort_unstable_by_key(|address| textual(*address));
        write_list(sorted.into_iter(), out)?;
    }
    writeln!(out)
}

/// Returns a key that orders numbers as their hexadecimal texts.
fn textual(address: u64) -> (u64, u64) {
    let zeros = address.leading_zeros() / 4 * 4;
    (address.checked_shl(zeros).unwrap_or(0), address)
}

/// The bytes of a list that are formatted before they are written.
const PIECE: usize = 4 << 10;

fn write_list(addresses: impl Iterator<Item = u64>, out: &mut dyn Write) -> io::Result<()> {
    let mut piece = String::with_capacity(PIECE + 32);
    for (address, number) in addresses.zip(0_u64..) {
        let separator = if number == 0 { "" } else { ", " };
        let _ = write!(piece, "{separator}0x{address:x}");
        if piece.len() >= PIECE {
            out.write_all(piece.as_bytes())?;
            piece.clear();
        }
    }
    out.write_all(piece.as_bytes())
}

fn write_sizes(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let sizes = record.sizes.sorted();
    if let [SizeCount { count: 1, .. }] = sizes[..] {
        return Ok(());
    }
    let one = |&SizeCount { size, count }: &SizeCount| match count {
        ..=1 => commas(size.into()),
        _ => format!("{} x {}", commas(size.into()), commas(count.into())),
    };
    let list: Vec<String> = sizes.iter().map(one).collect();
    let list = if list.is_empty() { "(no change)".to_owned() } else { list.join("; ") };
    writeln!(out, "  Individual block sizes: {list}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sorted_as_texts() {
        let lists: [&[u64]; 4] = [
            &[0x10, 0x20, 0x30],
            &[0x30, 0x20, 0x100, 0, 0x1, 0x1f, u64::MAX],
            &[0x7fff_0010, 0x5555_0010, 0x7fff_0010],
            &[0xffff],
        ];
        let many: Vec<u64> = (0xff00..0x1_1000).step_by(16).collect();
        for list in lists.into_iter().chain([&many[..]]) {
            let mut addresses = Addresses::default();
            list.iter().for_each(|address| addresses.push(*address));
            let mut texts: Vec<String> = list.iter().map(|at| format!("0x{at:x}")).collect();
            texts.sort();
            let mut out = Vec::new();
            write_addresses(&addresses, &mut out).expect("a vector takes all");
            let expected = format!("  block addresses: {}\n", texts.join(", "));
            assert_eq!(String::from_utf8(out).expect("text"), expected);
        }
    }
}
