//! Writes the blocks of a scan in binary, behind the JSON of a dump.
//!
//! A block with its address and its contents would take three times its size as JSON. So
//! `blockList` has the *kinds* of blocks, with all that many blocks have in common, and each block
//! is four numbers and its words. The format is described in the guide's `reference/formats.md`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use super::blocks::{write_age, write_holder, write_reports, write_site};
use super::keys::Keys;
use crate::collect::Dump;
use crate::collect::age::Age;
use crate::collect::findings::Scanned;
use crate::collect::groups::{GroupKey, Groups, ReportSet};
use crate::collect::holders::HolderId;
use crate::collect::scan::base_128::Digits;
use crate::collect::scan::list::ScannedBlock;
use crate::mem::local_interner::{Key, LocalInterner};
use crate::mem::pages::PageList;
use crate::stack::site::SiteId;

/// The byte between the JSON and the blocks. JSON has none like it.
const END_OF_JSON: u8 = 0;

/// The size of a word of contents in bytes.
const WORD: u64 = 8;

/// The size of the pieces in which contents are copied, in bytes.
const PIECE: usize = 1 << 20;

/// A kind of blocks: all that blocks of a scan may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    site: SiteId,
    reports: ReportSet,
    holder: HolderId,
    age: Age,
}

impl Key for Kind {
    fn words(self) -> (u64, u64) {
        let holder = u64::from(self.holder.bits()) << 32 | u64::from(self.age.number());
        (u64::from(self.site.number()) << 32 | u64::from(self.reports.number()), holder)
    }
}

/// The kinds of a scan's blocks, numbered from 0.
pub(super) struct Kinds {
    kinds: LocalInterner<Kind>,
    /// The kind of each group of the dump.
    by_group: PageList<u32>,
}

impl Kinds {
    /// Collects the kinds of all groups.
    ///
    /// # Errors
    ///
    /// If memory is short.
    pub(super) fn of(groups: &Groups) -> io::Result<Self> {
        let (mut kinds, mut by_group) = (LocalInterner::new(), PageList::new());
        for (group, _) in groups.iter() {
            let GroupKey { site, reports, holder, age, .. } = *group;
            let kind = kinds.intern(Kind { site, reports, holder, age });
            if !kind.is_some_and(|kind| by_group.push(kind)) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
        }
        Ok(Kinds { kinds, by_group })
    }

    /// Writes a record for each kind.
    pub(super) fn write(
        &self,
        dump: &Dump,
        keys: &mut Keys,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut separator = "\n";
        for kind in self.kinds.keys() {
            write!(out, "{separator}{{\"req\":0")?;
            separator = ",\n";
            write_site(kind.site, keys, out)?;
            // Mozilla's readers reject `reps` in this mode.
            write_reports("reportedBy", dump.contents.groups.reports(kind.reports), keys, out)?;
            write_holder(kind.holder, keys, out)?;
            write_age(kind.age, out)?;
            out.write_all(b"}")?;
        }
        Ok(())
    }

    /// Writes all blocks with their contents.
    pub(super) fn write_blocks(
        &self,
        scanned: &Scanned,
        groups: &Groups,
        out: &mut impl Write,
    ) -> io::Result<()> {
        out.write_all(&[END_OF_JSON])?;
        let mut contents = scanned.file.as_ref().map(Contents::new).transpose()?;
        let mut before = 0;
        for ScannedBlock { address, group, contents: range } in scanned.blocks.iter() {
            let kind = self.by_group.as_slice().get(group.number() as usize);
            let (Some(kind), Some(sizes)) = (kind, groups.key(group)) else { continue };
            let words = range.filter(|range| range.bytes == sizes.requested as u64 / WORD * WORD);
            let words = words.zip(contents.as_mut());
            for number in [
                (address - before) as u64,
                sizes.requested as u64,
                (sizes.usable - sizes.requested) as u64,
                u64::from(*kind) << 1 | u64::from(words.is_some()),
            ] {
                out.write_all(Digits::of(number).as_bytes())?;
            }
            before = address;
            if let Some((range, contents)) = words {
                contents.copy(range.offset, range.bytes, out)?;
            }
        }
        Ok(())
    }
}

/// The file of contents, read from its beginning to its end.
struct Contents<'f> {
    file: BufReader<&'f File>,
    position: u64,
}

impl<'f> Contents<'f> {
    fn new(file: &'f File) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(PIECE, file);
        io::Seek::rewind(&mut file)?;
        Ok(Contents { file, position: 0 })
    }

    /// Copies these bytes, which lie behind the ones of the last call.
    fn copy(&mut self, offset: u64, bytes: u64, out: &mut impl Write) -> io::Result<()> {
        let skipped = i64::try_from(offset - self.position).map_err(io::Error::other)?;
        self.file.seek_relative(skipped)?;
        self.position = offset + bytes;
        let mut left = bytes;
        while left > 0 {
            let piece = self.file.fill_buf()?;
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            out.write_all(&piece[..length])?;
            self.file.consume(length);
            left -= length as u64;
        }
        Ok(())
    }
}
