//! The words of a block or of another holder, of which a large block has only some in memory.

use std::cell::RefCell;

use crate::analysis::scan::links::{BlockRanges, LARGE};
use crate::read::{Contents, Dump};

/// The words of a block or of another holder.
#[derive(Clone, Copy)]
pub(in crate::ownership) struct Words<'w>(Kept<'w>);

#[derive(Clone, Copy)]
enum Kept<'w> {
    All(&'w [u64]),
    Pages(&'w PagedWords<'w>),
}

/// The room for the words of one block.
#[derive(Default)]
pub(in crate::ownership) struct Room<'d> {
    buffer: Vec<u64>,
    paged: Option<PagedWords<'d>>,
}

/// The words of a large block, of which some pages are in memory.
struct PagedWords<'d> {
    dump: &'d Dump,
    contents: Contents,
    /// The page that was used last comes first.
    pages: RefCell<Vec<Page>>,
}

#[derive(Default)]
struct Page {
    number: usize,
    words: Vec<u64>,
}

/// The words of a page: 64 KiB.
const PAGE: usize = if cfg!(test) { 2 } else { 8 << 10 };

/// The most pages in memory. The entries of a hash table and their control bytes are in two.
const PAGES: usize = 4;

impl<'w> Words<'w> {
    /// Makes words of those in memory.
    pub(in crate::ownership) fn new(words: &'w [u64]) -> Self {
        Self(Kept::All(words))
    }

    /// Reads the words of a block, none if the dump does not contain them.
    pub(in crate::ownership) fn of<'d: 'w>(
        ranges: &'w BlockRanges<'d>,
        block: u32,
        room: &'w mut Room<'d>,
    ) -> Self {
        let dump = ranges.dump();
        match dump.contents_of(block as usize) {
            None => Self::new(&[]),
            Some(contents) if contents.count() > LARGE && dump.has_words_in_file() => {
                let pages = RefCell::default();
                Self(Kept::Pages(room.paged.insert(PagedWords { dump, contents, pages })))
            }
            Some(contents) => Self::new(dump.words(&contents, &mut room.buffer)),
        }
    }

    /// Returns the words if all are in memory.
    pub(in crate::ownership) fn all(self) -> Option<&'w [u64]> {
        match self.0 {
            Kept::All(words) => Some(words),
            Kept::Pages(_) => None,
        }
    }

    /// Returns the bytes of all words.
    pub(in crate::ownership) fn bytes(self) -> u64 {
        let count = match self.0 {
            Kept::All(words) => words.len(),
            Kept::Pages(paged) => paged.contents.count(),
        };
        count as u64 * 8
    }

    /// Returns the number of this size at an offset; `None` outside of the words.
    pub(in crate::ownership) fn number(self, offset: u64, size: u64) -> Option<u64> {
        let at = usize::try_from(offset / 8).ok()?;
        let word = match self.0 {
            Kept::All(words) => *words.get(at)?,
            Kept::Pages(paged) => paged.word(at)?,
        };
        let (shift, bits) = (offset % 8 * 8, size.checked_mul(8)?);
        if bits == 0 || shift + bits > 64 {
            return None;
        }
        Some((word >> shift) & (u64::MAX >> (64 - bits)))
    }
}

impl PagedWords<'_> {
    /// Returns the word with this number; `None` behind the last one.
    fn word(&self, at: usize) -> Option<u64> {
        if at >= self.contents.count() {
            return None;
        }
        let (number, pages) = (at / PAGE, &mut *self.pages.borrow_mut());
        if let Some(known) = pages.iter().position(|page| page.number == number) {
            pages[..=known].rotate_right(1);
        } else {
            let mut page = if pages.len() < PAGES { None } else { pages.pop() }.unwrap_or_default();
            page.number = number;
            page.words.clear();
            let mut buffer = Vec::new();
            let words = self.dump.words_from(&self.contents, number * PAGE, PAGE, &mut buffer);
            page.words.extend_from_slice(words);
            pages.insert(0, page);
        }
        pages.first()?.words.get(at % PAGE).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_slice;

    #[test]
    fn numbers_of_each_size_are_read_at_any_offset_within_a_word() {
        let words = Words::new(&[0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09]);
        for ((offset, size), expected) in [
            ((0, 8), Some(0x0807_0605_0403_0201)),
            ((8, 8), Some(0x100f_0e0d_0c0b_0a09)),
            ((8, 1), Some(0x09)),
            ((3, 1), Some(0x04)),
            ((10, 2), Some(0x0c0b)),
            ((12, 4), Some(0x100f_0e0d)),
            // Across two words, outside, and of no size.
            ((6, 4), None),
            ((16, 1), None),
            ((0, 0), None),
        ] {
            assert_eq!(words.number(offset, size), expected, "{size} bytes at {offset}");
        }
    }

    #[test]
    fn words_of_a_large_block_are_read_page_by_page() {
        let count = 2 * (PAGES * PAGE) as u64 + 1;
        let contents: Vec<String> = (0..count).map(|word| format!("\"{word:x}\"")).collect();
        let text = format!(
            r##"{{"version":5,"invocation":{{"dmdEnvVar":null,"mode":"scan"}},"blockList":[
            {{"req":{},"addr":"10000","contents":[{}]}}],"traceTable":{{}},"frameTable":{{}}}}"##,
            count * 8,
            contents.join(",")
        );
        let dump = read_slice(text.as_bytes()).expect("it is a dump");
        let ranges = BlockRanges::new(&dump).expect("it is a scan");
        let mut room = Room::default();
        assert!(Words::of(&ranges, 0, &mut room).all().is_some(), "they are in memory anyway");
        let contents = dump.contents_of(0).expect("it has contents");
        let paged = PagedWords { dump: &dump, contents, pages: RefCell::default() };
        let words = Words(Kept::Pages(&paged));
        assert_eq!(words.bytes(), count * 8);
        // Upwards, downwards, and in two places in turn.
        let both = (0..count).flat_map(|at| [at, count - 1 - at]);
        for at in (0..count).chain((0..count).rev()).chain(both) {
            assert_eq!(words.number(at * 8, 8), Some(at));
        }
        assert!(paged.pages.borrow().len() == PAGES);
        for behind in [count, count + 1, count + 8 * PAGE as u64, u64::MAX / 8] {
            assert_eq!(words.number(behind.saturating_mul(8), 8), None);
        }
    }
}
