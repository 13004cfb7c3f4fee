//! Writes a dump, group by group: the file is never in memory as a whole, and what is kept to write it is in the tracker's
//! own pages.

mod log;
mod own;

pub(crate) use log::write_log;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use serde::Serialize;
use serde_json::json;

use crate::collect::Dump;
use crate::collect::age::Age;
use crate::collect::balance::{Kind, Kinds, ReportSet};
use crate::collect::findings::{Contents, Report, Scanned, ScannedBlock};
use crate::collect::holders::HolderId;
use crate::collect::scan::Place;
use crate::mem::local_interner::{Key, LocalInterner};
use crate::mem::pages::PageList;
use crate::mem::sys::Module;
use crate::stack::site;
use crate::stack::site::SiteId;

/// Writes the file.
pub(super) fn write(dump: &Dump, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    let out = &mut out;
    let mut keys = Keys::new();
    out.write_all(b"{\"version\":5,\n\"invocation\":")?;
    put(out, &json!({ "dmdEnvVar": dump.variable, "mode": dump.mode.name_in_dumps() }))?;
    out.write_all(b",\n\"blockList\":[")?;
    match &dump.contents.scanned {
        Some(scanned) => write_scanned(scanned, dump, &mut keys, out)?,
        None => write_groups(dump, &mut keys, out)?,
    }
    out.write_all(b"],\n\"memreport\":")?;
    put(out, &own::own_fields(dump, &mut keys))?;
    out.write_all(b",\n\"traceTable\":{")?;
    write_traces(dump, &mut keys, out)?;
    out.write_all(b"},\n\"frameTable\":{")?;
    write_frames(&dump.modules, &keys, out)?;
    out.write_all(b"}}\n")?;
    out.flush()
}

fn put(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(out, value)?)
}

fn write_groups(dump: &Dump, keys: &mut Keys, out: &mut impl Write) -> io::Result<()> {
    let Contents { kinds, .. } = &dump.contents;
    let mut separator = "\n";
    for (kind, count) in kinds.iter() {
        let Kind { requested, usable, site, reports, holder, rate, age, is_freed } = *kind;
        write!(out, "{separator}{{\"req\":{requested}")?;
        separator = ",\n";
        write_slop_and_site(usable - requested, site, keys, out)?;
        if dump.mode.has_reports() {
            write_reports("reps", (kinds, reports), keys, out)?;
            write_holder(holder, keys, out)?;
        }
        if count != 1 {
            write!(out, ",\"num\":{count}")?;
        }
        let weight = rate.weight(usable);
        if weight > 1.0 {
            write!(out, ",\"weight\":{weight}")?;
        }
        write_age(age, out)?;
        out.write_all(if is_freed { b",\"freed\":true}" } else { b"}" })?;
    }
    Ok(())
}

fn write_slop_and_site(
    slop: usize,
    site: SiteId,
    keys: &mut Keys,
    out: &mut impl Write,
) -> io::Result<()> {
    if slop != 0 {
        write!(out, ",\"slop\":{slop}")?;
    }
    if let Some(stack) = Dump::stack(site) {
        write!(out, ",\"alloc\":\"{}\"", keys.stacks.key(stack, &mut keys.next))?;
    }
    if let Some(site) = site::site(site) {
        write!(out, ",\"thread\":{}", site.thread)?;
        if site.scope != 0 {
            write!(out, ",\"scope\":{}", site.scope)?;
        }
    }
    Ok(())
}

/// Who reports a block: nothing if nobody does.
fn write_reports(
    name: &str,
    (kinds, reports): (&Kinds, ReportSet),
    keys: &mut Keys,
    out: &mut impl Write,
) -> io::Result<()> {
    if reports == ReportSet::NOBODY {
        return Ok(());
    }
    let mut before = "";
    write!(out, ",\"{name}\":[")?;
    for report in kinds.reports(reports) {
        write!(out, "{before}\"{}\"", keys.reports.key(report, &mut keys.next))?;
        before = ",";
    }
    out.write_all(b"]")
}

/// What holds a block that nobody reports: nothing if that is not known.
fn write_holder(holder: HolderId, keys: &mut Keys, out: &mut impl Write) -> io::Result<()> {
    if holder == HolderId::default() {
        return Ok(());
    }
    let name = if holder.is_through_others() { "heldThrough" } else { "heldBy" };
    write!(out, ",\"{name}\":\"{}\"", keys.holders.key(holder.number(), &mut keys.next))
}

/// How old a block is: nothing if its time was not kept.
fn write_age(age: Age, out: &mut impl Write) -> io::Result<()> {
    age.milliseconds().map_or(Ok(()), |age| write!(out, ",\"ageMs\":{age}"))
}

/// Every block for itself, with the words that were in it.
fn write_scanned(
    scanned: &Scanned,
    dump: &Dump,
    keys: &mut Keys,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut separator = "\n";
    for scanned_block in scanned.blocks.as_slice() {
        let ScannedBlock { address, block, reports, holder, age, contents } = scanned_block;
        write!(out, "{separator}{{\"req\":{},\"addr\":\"{address:x}\"", block.requested)?;
        separator = ",\n";
        write_slop_and_site(block.usable - block.requested, block.site, keys, out)?;
        // Mozilla's readers refuse `reps` in this mode.
        write_reports("reportedBy", (&dump.contents.kinds, *reports), keys, out)?;
        write_holder(*holder, keys, out)?;
        write_age(*age, out)?;
        if let (Some(place), Some(file)) = (contents.filter(|place| place.bytes > 0), &scanned.file)
        {
            out.write_all(b",\"contents\":[")?;
            write_words(file, place, out)?;
            out.write_all(b"]")?;
        }
        out.write_all(b"}")?;
    }
    Ok(())
}

fn write_words(file: &File, place: Place, out: &mut impl Write) -> io::Result<()> {
    let Place { offset, bytes } = place;
    let mut piece = [0; 4096];
    let mut before = "";
    let mut done = 0;
    while done < bytes {
        let length = usize::try_from(bytes - done).unwrap_or(usize::MAX).min(piece.len());
        let piece = &mut piece[..length];
        file.read_exact_at(piece, offset + done)?;
        for word in piece.chunks_exact(size_of::<usize>()) {
            let word = word.try_into().map(usize::from_ne_bytes).unwrap_or_default();
            write!(out, "{before}\"{word:x}\"")?;
            before = ",";
        }
        done += length as u64;
    }
    Ok(())
}

/// The base-32 keys of traces and frames: one count for both.
struct Keys {
    next: u32,
    /// By the number of the stack.
    stacks: Keyed<u32>,
    reports: Keyed<u32>,
    holders: Keyed<u32>,
    /// By return address.
    frames: Keyed<usize>,
    /// What the frames of report traces say.
    words: Vec<(u32, String)>,
}

/// Values that have keys, in the order of their keys.
struct Keyed<K> {
    numbers: LocalInterner<K>,
    keys: PageList<u32>,
}

impl<K: Key> Keyed<K> {
    const fn new() -> Self {
        Keyed { numbers: LocalInterner::new(), keys: PageList::new() }
    }

    /// The key of the value. When memory is short, values share the first.
    fn key(&mut self, value: K, next: &mut u32) -> Base32 {
        let number = self.numbers.intern(value).unwrap_or(0) as usize;
        if number == self.keys.as_slice().len() && self.keys.push(*next) {
            *next += 1;
        }
        Base32(self.keys.as_slice().get(number).copied().unwrap_or(0))
    }

    fn get(&self, index: usize) -> Option<(Base32, K)> {
        Some((Base32(*self.keys.as_slice().get(index)?), *self.numbers.keys().get(index)?))
    }

    fn iter(&self) -> impl Iterator<Item = (Base32, K)> {
        (0..self.keys.as_slice().len()).map_while(|index| self.get(index))
    }

    fn len(&self) -> usize {
        self.keys.as_slice().len()
    }
}

impl Keys {
    const fn new() -> Self {
        Keys {
            next: 0,
            stacks: Keyed::new(),
            reports: Keyed::new(),
            holders: Keyed::new(),
            frames: Keyed::new(),
            words: Vec::new(),
        }
    }

    fn word(&mut self, word: String) -> Base32 {
        let known = self.words.iter().find(|(_, known)| *known == word).map(|(key, _)| *key);
        Base32(known.unwrap_or_else(|| {
            self.words.push((self.next, word));
            self.next += 1;
            self.next - 1
        }))
    }
}

/// A number in digits `A` to `Z`, `a` to `f`.
#[derive(Clone, Copy)]
struct Base32(u32);

impl std::fmt::Display for Base32 {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
        let digits = (32 - self.0.leading_zeros()).div_ceil(5).max(1);
        (0..digits).rev().try_for_each(|digit| {
            out.write_char(char::from(DIGITS[(self.0 >> (5 * digit)) as usize & 31]))
        })
    }
}

fn write_traces(dump: &Dump, keys: &mut Keys, out: &mut impl Write) -> io::Result<()> {
    let mut separator = write_stacks(keys, out)?;
    for index in 0..keys.reports.len() {
        let Some((key, report)) = keys.reports.get(index) else { continue };
        let Some(report) = dump.report(report) else { continue };
        let frames: Vec<String> =
            report_words(report).map(|word| keys.word(word).to_string()).collect();
        write!(out, "{separator}\"{key}\":")?;
        separator = ",\n";
        put(out, &frames)?;
    }
    Ok(())
}

/// Says what is to stand before the next one.
fn write_stacks(keys: &mut Keys, out: &mut impl Write) -> io::Result<&'static str> {
    let mut separator = "\n";
    let Keys { next, stacks, frames, .. } = keys;
    for (key, stack) in stacks.iter() {
        write!(out, "{separator}\"{key}\":[")?;
        separator = ",\n";
        let mut before = "";
        for address in site::frames(stack) {
            write!(out, "{before}\"{}\"", frames.key(address, next))?;
            before = ",";
        }
        out.write_all(b"]")?;
    }
    Ok(separator)
}

/// The frames of a report trace: the field that led to the block, then the reporter.
fn report_words(report: &Report) -> impl Iterator<Item = String> {
    let field = report.field.map(|field| {
        format!("{}.{} ({}:{})", field.owner(), field.name(), field.file(), field.line())
    });
    field.into_iter().chain([report.path.clone()])
}

fn write_frames(modules: &[Module], keys: &Keys, out: &mut impl Write) -> io::Result<()> {
    let places = Places::new(modules);
    let mut separator = "\n";
    let mut frame = |key: Base32, description: &str| {
        write!(out, "{separator}\"{key}\":")?;
        separator = ",\n";
        put(out, &format_args!("#00: {description}"))
    };
    for (key, address) in keys.frames.iter() {
        frame(key, &places.describe(address))?;
    }
    for (key, word) in &keys.words {
        frame(Base32(*key), word)?;
    }
    Ok(())
}

/// Modules by address.
pub(crate) struct Places<'d> {
    /// First address, one past the last, module; sorted.
    segments: Vec<(usize, usize, &'d Module)>,
}

impl<'d> Places<'d> {
    pub(crate) fn new(modules: &'d [Module]) -> Self {
        let of = |module: &'d Module| {
            module.segments.iter().map(move |&(low, high)| (low, high, module))
        };
        let mut segments: Vec<_> = modules.iter().flat_map(of).collect();
        segments.sort_unstable_by_key(|segment| segment.0);
        Places { segments }
    }

    /// The module that holds an address, and the address in its file.
    fn of(&self, address: usize) -> Option<(&'d Module, usize)> {
        let after = self.segments.partition_point(|segment| segment.0 <= address);
        let (_, high, module) = *self.segments.get(after.checked_sub(1)?)?;
        (address < high).then(|| (module, address - module.bias))
    }

    fn fields(&self, address: usize) -> Option<serde_json::Value> {
        let (module, offset) = self.of(address)?;
        Some(json!({ "module": module.path, "offset": format!("{offset:x}") }))
    }

    /// As Mozilla's stack walker writes what it has no name for.
    pub(crate) fn describe(&self, address: usize) -> String {
        match self.of(address) {
            Some((module, offset)) => format!("???[{} +0x{offset:x}]", module.path),
            None => format!("???[0x{address:x}]"),
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
            assert_eq!(Base32(number).to_string(), key);
        }
    }

    #[test]
    fn a_return_address_is_placed_in_its_module() {
        let module = |path: &str, bias, segments: &[(usize, usize)]| Module {
            path: path.to_owned(),
            bias,
            segments: segments.to_vec(),
            data: Vec::new(),
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
