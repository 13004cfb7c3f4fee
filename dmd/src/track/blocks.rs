//! The table of all live blocks: a radix map from address to one word, made of pages as they are needed.
//!
//! The address space is cut into leaves of 1 MiB; a leaf has a word for each granule in which a block can start. Only the
//! owner of a block writes its word, after the allocator has handed it out and before it takes it back, so neither a lock
//! nor a read-modify-write is needed. Others read at any time. Nothing is ever unmapped.

#[cfg(not(loom))]
mod traces;

use super::entry::{Block, Entry, Generation, Sizes};
use super::pages::Lazy;
use super::records::{Record, Records};
use super::sync::Ordering::{Acquire, Relaxed, Release};
use super::sync::{AtomicU64, AtomicUsize, array_of, const_fn, load_own};
use super::sys;

/// A model has a table of two leaves of four granules, since loom tries all that can happen in it.
const LEAF_BITS: u32 = if cfg!(loom) { 7 } else { 20 };
const MIDDLE_BITS: u32 = if cfg!(loom) { 1 } else { 14 };
const TOP_BITS: u32 = if cfg!(loom) { 0 } else { 13 };

const _: () = assert!(cfg!(loom) || 1 << (LEAF_BITS + MIDDLE_BITS + TOP_BITS) == sys::ADDRESS_END);

/// The words of one page: the unit in which a leaf knows what it has touched.
const WORDS_PER_PAGE: usize = if cfg!(loom) { 2 } else { sys::PAGE / size_of::<AtomicU64>() };

/// Words before those of the granules: one bit for each touched page, then the start of the block that reaches in.
const TOUCHED_WORDS: usize = 2;
const REACHES_IN: usize = TOUCHED_WORDS;
/// The granules' words begin on a page of their own.
const HEADER: usize = if cfg!(loom) { REACHES_IN + 1 } else { WORDS_PER_PAGE };

/// The stretch of memory in which at most one block starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granule {
    shift: u32,
}

impl Granule {
    /// Of an allocator whose blocks are at least this many bytes apart: 16 or 32.
    pub(crate) const fn of_spacing(bytes: usize) -> Self {
        assert!(bytes == 16 || bytes == 32, "the spacing of blocks is 16 or 32 bytes");
        Granule { shift: bytes.trailing_zeros() }
    }

    pub(crate) const fn bytes(self) -> usize {
        1 << self.shift
    }

    const fn words(self) -> usize {
        1 << (LEAF_BITS - self.shift)
    }

    fn is_second_half(self, address: usize) -> bool {
        address & (self.bytes() / 2) != 0
    }

    fn start(self, granule: usize, second_half: bool) -> usize {
        (granule << self.shift) + if second_half { self.bytes() / 2 } else { 0 }
    }
}

/// All live blocks that the tracker was told of.
pub(crate) struct Blocks {
    top: [Lazy<Leaf>; 1 << TOP_BITS],
    records: Records,
    /// Blocks that could not be entered: no memory for a leaf, or an address past the end.
    lost: AtomicUsize,
}

/// A leaf's place: its words are made when a block first starts in it or reaches into it.
#[repr(transparent)]
struct Leaf {
    words: Lazy<AtomicU64>,
}

#[expect(unsafe_code, reason = "a null pointer is a leaf that was not made yet")]
// SAFETY: all zeros is an empty `Lazy`, which has no destructor.
unsafe impl super::pages::Zeroed for Leaf {
    #[cfg(loom)]
    fn zero() -> Self {
        Leaf { words: Lazy::new() }
    }
}

impl Blocks {
    const_fn! {
        pub(crate) fn new() -> Self {
            Blocks {
                top: array_of!(Lazy::new(); 1 << TOP_BITS),
                records: Records::new(),
                lost: AtomicUsize::new(0),
            }
        }
    }

    /// Enters a block that the allocator has just handed out.
    pub(crate) fn insert(&self, granule: Granule, address: usize, block: Block) {
        let Some(words) = self.leaf_or_make(granule, address) else { return self.lose() };
        let half = granule.is_second_half(address);
        let entry = Entry::small(block, half).or_else(|| {
            let Block { requested, usable, time, .. } = block;
            let record = self.records.keep(Record { requested, usable, time })?;
            Some(Entry::with_record(block, half, record))
        });
        let Some(entry) = entry else { return self.lose() };
        enter(words, place(granule, address), entry);
        if crosses_leaves(address, block.usable) {
            self.reach(granule, address, block.usable, address);
        }
    }

    /// As [`insert`](Self::insert), unless the leaf is not made yet, or the block needs a record, or reaches into another leaf.
    #[inline(always)]
    pub(crate) fn insert_quickly(&self, granule: Granule, address: usize, block: Block) -> bool {
        let entry = Entry::small(block, granule.is_second_half(address));
        match (self.leaf(granule, address), entry) {
            (Some(words), Some(entry)) if !crosses_leaves(address, block.usable) => {
                enter(words, place(granule, address), entry);
                true
            }
            _ => false,
        }
    }

    /// Forgets a block that is about to be given back, and says what was known of it.
    #[inline]
    pub(crate) fn remove(&self, granule: Granule, address: usize) -> Option<Block> {
        self.remove_with(granule, address, |_, _| 0)
    }

    #[inline]
    fn remove_with(
        &self,
        granule: Granule,
        address: usize,
        after: impl FnOnce(Block, bool) -> u64,
    ) -> Option<Block> {
        let words = self.leaf(granule, address)?;
        let word = &words[HEADER + place(granule, address)];
        let entry = Entry::from_word(load_own(word))?;
        if entry.is_second_half() != granule.is_second_half(address) {
            return None;
        }
        let block = self.block(entry);
        // A store is enough: nobody else writes a live block's word but to age it, and that gives way.
        word.store(after(block, entry.is_second_half()), Release);
        if let Sizes::Record(record) = entry.sizes() {
            self.records.release(record);
        }
        if crosses_leaves(address, block.usable) {
            self.reach(granule, address, block.usable, 0);
        }
        Some(block)
    }

    /// As [`remove`](Self::remove), but for blocks with a record and those that reach into another leaf. Says only how many bytes of the
    /// block could be used.
    #[inline(always)]
    pub(crate) fn take_quickly(&self, granule: Granule, address: usize) -> Option<usize> {
        let words = self.leaf(granule, address)?;
        let word = &words[HEADER + place(granule, address)];
        let entry = Entry::from_word(load_own(word))?;
        match entry.sizes() {
            Sizes::Here { usable, .. }
                if entry.is_second_half() == granule.is_second_half(address)
                    && !crosses_leaves(address, usable) =>
            {
                // As in `remove`.
                word.store(0, Release);
                Some(usable)
            }
            _ => None,
        }
    }

    /// Whether a block at this address can be in the table: quick where few are, since its word need not be read.
    #[inline]
    pub(crate) fn may_hold(&self, granule: Granule, address: usize) -> bool {
        self.leaf(granule, address).is_some_and(|words| is_touched(words, place(granule, address)))
    }

    /// The block that starts at this address.
    pub(crate) fn starting_at(&self, granule: Granule, address: usize) -> Option<(Block, Entry)> {
        let words = self.leaf(granule, address)?;
        let found = self.read(&words[HEADER + place(granule, address)])?;
        (found.1.is_second_half() == granule.is_second_half(address)).then_some(found)
    }

    /// The usable bytes of the block that starts at this address, and its word, if it is small and was made with this size.
    #[inline]
    pub(crate) fn whole(
        &self,
        granule: Granule,
        address: usize,
        size: usize,
    ) -> Option<(usize, Entry)> {
        let words = self.leaf(granule, address)?;
        let word = words[HEADER + place(granule, address)].load(Acquire);
        Entry::whole(word, size, granule.is_second_half(address))
    }

    /// Where the word of a block at this address is, or null if there is none.
    #[inline]
    pub(crate) fn entry_address(&self, granule: Granule, address: usize) -> *const u8 {
        let word =
            self.leaf(granule, address).map(|words| &words[HEADER + place(granule, address)]);
        word.map_or(std::ptr::null(), |word| std::ptr::from_ref(word).cast())
    }

    /// The block that holds this address, and its start.
    pub(crate) fn enclosing(
        &self,
        granule: Granule,
        address: usize,
    ) -> Option<(usize, Block, Entry)> {
        let words = self.leaf(granule, address)?;
        let nearest = self.nearest(granule, words, address, Entry::from_word);
        let nearest = nearest.map(|(start, _)| start).or_else(|| {
            let reaching_in = usize::try_from(words[REACHES_IN].load(Acquire)).ok()?;
            (reaching_in != 0).then_some(reaching_in)
        })?;
        let (block, entry) = self.starting_at(granule, nearest)?;
        (address < nearest + block.usable).then_some((nearest, block, entry))
    }

    /// Hands every live block to `visit`, in the order of their addresses. Blocks that come or go meanwhile may be missed;
    /// all others are seen exactly once.
    pub(crate) fn for_each(&self, granule: Granule, mut visit: impl FnMut(usize, Block, Entry)) {
        self.for_each_word(granule, |start_of, word| {
            if let Some((block, entry)) = self.read(word) {
                visit(granule.start(start_of, entry.is_second_half()), block, entry);
            }
        });
    }

    /// Makes every block of that generation old, so that the generation can be used again.
    pub(crate) fn age(&self, granule: Granule, generation: Generation) {
        self.for_each_word(granule, |_, word| {
            let seen = word.load(Relaxed);
            if let Some(entry) = Entry::from_word(seen).filter(|entry| entry.birth() == generation)
            {
                // If the owner gives the block back meanwhile, the word is no longer the one seen, and stays as it is: no
                // new block is born in that generation.
                let _ = word.compare_exchange(seen, entry.aged().word(), Relaxed, Relaxed);
            }
        });
    }

    /// Bytes that are mapped for leaves and were never touched, so that they take no memory.
    pub(crate) fn untouched(&self, granule: Granule) -> usize {
        self.leaves(granule)
            .map(|(_, words)| size_of_val(words) - (1 + touched_pages(words).count()) * sys::PAGE)
            .sum()
    }

    /// How many blocks could not be entered.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Relaxed)
    }

    fn for_each_word(&self, granule: Granule, mut visit: impl FnMut(usize, &AtomicU64)) {
        for (base, words) in self.leaves(granule) {
            for page in touched_pages(words) {
                let first = page * WORDS_PER_PAGE;
                let page = &words[HEADER + first..HEADER + first + WORDS_PER_PAGE];
                for (index, word) in page.iter().enumerate() {
                    visit(base + first + index, word);
                }
            }
        }
    }

    /// The leaves that were made, with the number of their first granule.
    fn leaves(&self, granule: Granule) -> impl Iterator<Item = (usize, &'static [AtomicU64])> {
        let middles = self
            .top
            .iter()
            .enumerate()
            .filter_map(|(high, middle)| Some((high, middle.get(1 << MIDDLE_BITS)?)));
        let leaves = middles.flat_map(|(high, leaves)| {
            leaves.iter().enumerate().map(move |(low, leaf)| ((high << MIDDLE_BITS) + low, leaf))
        });
        leaves.filter_map(move |(number, leaf)| {
            let words = leaf.words.get(HEADER + granule.words())?;
            Some((number << (LEAF_BITS - granule.shift), words))
        })
    }

    /// What a word says at this moment, in somebody else's hands.
    fn read(&self, word: &AtomicU64) -> Option<(Block, Entry)> {
        loop {
            let entry = Entry::from_word(word.load(Acquire))?;
            let block = self.block(entry);
            // A record may have gone to another block while it was read.
            if matches!(entry.sizes(), Sizes::Here { .. }) || word.load(Acquire) == entry.word() {
                return Some((block, entry));
            }
        }
    }

    fn block(&self, entry: Entry) -> Block {
        let Record { requested, usable, time } = match entry.sizes() {
            Sizes::Here { requested, usable } => Record { requested, usable, time: 0 },
            Sizes::Record(record) => self.records.get(record),
        };
        let (site, birth, rate) = (entry.site(), entry.birth(), entry.rate());
        Block { requested, usable, site, birth, rate, time }
    }

    /// The last block of the leaf that starts at or before `address`, among those that `entry_of` takes for one.
    fn nearest(
        &self,
        granule: Granule,
        words: &[AtomicU64],
        address: usize,
        entry_of: impl Fn(u64) -> Option<Entry>,
    ) -> Option<(usize, Entry)> {
        let last = place(granule, address);
        let touched: u128 = (0..TOUCHED_WORDS)
            .map(|index| u128::from(words[index].load(Relaxed)) << (64 * index))
            .sum();
        let mut page = last / WORDS_PER_PAGE;
        let mut end = last + 1;
        loop {
            if touched >> page & 1 != 0 {
                for index in (page * WORDS_PER_PAGE..end).rev() {
                    let Some(entry) = entry_of(words[HEADER + index].load(Acquire)) else {
                        continue;
                    };
                    let index = (address >> LEAF_BITS << (LEAF_BITS - granule.shift)) + index;
                    let start = granule.start(index, entry.is_second_half());
                    if start <= address {
                        return Some((start, entry));
                    }
                }
            }
            end = page * WORDS_PER_PAGE;
            page = page.checked_sub(1)?;
        }
    }

    /// Notes in every further leaf that the block covers where it starts, or with 0 that it no longer covers it.
    #[cold]
    fn reach(&self, granule: Granule, address: usize, usable: usize, start: usize) {
        let first = (address >> LEAF_BITS) + 1;
        let last = (address + usable - 1) >> LEAF_BITS;
        for leaf in first..=last {
            if let Some(words) = self.leaf_or_make(granule, leaf << LEAF_BITS) {
                words[REACHES_IN].store(start as u64, Release);
            }
        }
    }

    #[inline]
    fn leaf(&self, granule: Granule, address: usize) -> Option<&'static [AtomicU64]> {
        let middle = self.top.get(address >> (LEAF_BITS + MIDDLE_BITS))?.get(1 << MIDDLE_BITS)?;
        middle[address >> LEAF_BITS & ((1 << MIDDLE_BITS) - 1)].words.get(HEADER + granule.words())
    }

    #[inline]
    fn leaf_or_make(&self, granule: Granule, address: usize) -> Option<&'static [AtomicU64]> {
        let middle =
            self.top.get(address >> (LEAF_BITS + MIDDLE_BITS))?.get_or_make(1 << MIDDLE_BITS)?;
        middle[address >> LEAF_BITS & ((1 << MIDDLE_BITS) - 1)]
            .words
            .get_or_make(HEADER + granule.words())
    }

    #[cold]
    fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
    }
}

#[inline(always)]
fn enter(words: &[AtomicU64], place: usize, entry: Entry) {
    touch(words, place);
    // Release, with the Acquire of readers: a record is there before the word that names it.
    words[HEADER + place].store(entry.word(), Release);
}

/// Whether the last byte of a block is in another leaf than the first.
#[inline]
fn crosses_leaves(address: usize, usable: usize) -> bool {
    (address ^ (address + usable - usize::from(usable > 0))) >> LEAF_BITS != 0
}

/// The word of the granule in its leaf.
#[inline]
fn place(granule: Granule, address: usize) -> usize {
    (address & ((1 << LEAF_BITS) - 1)) >> granule.shift
}

/// Remembers that the page of this word has held a block: others need not be read, and so stay without memory.
#[inline]
fn touch(words: &[AtomicU64], place: usize) {
    let page = place / WORDS_PER_PAGE;
    let bits = &words[page / 64];
    let bit = 1 << (page % 64);
    if bits.load(Relaxed) & bit == 0 {
        bits.fetch_or(bit, Relaxed);
    }
}

#[inline]
fn is_touched(words: &[AtomicU64], place: usize) -> bool {
    let page = place / WORDS_PER_PAGE;
    // Relaxed: whoever gives a block back has seen it entered.
    words[page / 64].load(Relaxed) >> (page % 64) & 1 != 0
}

fn touched_pages(words: &[AtomicU64]) -> impl Iterator<Item = usize> {
    let touched: [u64; TOUCHED_WORDS] = std::array::from_fn(|index| words[index].load(Relaxed));
    (0..TOUCHED_WORDS * 64).filter(move |page| touched[page / 64] >> (page % 64) & 1 != 0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::rates::Rate;
    use super::super::sites::SiteId;
    use super::*;

    const GLIBC: Granule = Granule::of_spacing(32);

    fn block(requested: usize, usable: usize) -> Block {
        Block {
            requested,
            usable,
            site: SiteId::from_number(7),
            birth: Generation::FIRST,
            rate: Rate::EVERY,
            time: 0,
        }
    }

    fn all(blocks: &Blocks, granule: Granule) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        blocks.for_each(granule, |address, block, _| found.push((address, block.requested)));
        found
    }

    #[test]
    fn blocks_are_found_by_start_and_by_any_address_inside() {
        for granule in [GLIBC, Granule::of_spacing(16)] {
            let blocks = Box::new(Blocks::new());
            blocks.insert(granule, 0x7f00_0010_0010, block(20, 24));
            blocks.insert(granule, 0x7f00_0010_0040, block(100, 104));
            assert_eq!(blocks.starting_at(granule, 0x7f00_0010_0010).unwrap().0.requested, 20);
            assert!(blocks.starting_at(granule, 0x7f00_0010_0020).is_none());
            let enclosing = |address| blocks.enclosing(granule, address).map(|(start, ..)| start);
            assert_eq!(enclosing(0x7f00_0010_0027), Some(0x7f00_0010_0010));
            assert_eq!(enclosing(0x7f00_0010_0028), None);
            assert_eq!(enclosing(0x7f00_0010_0040 + 103), Some(0x7f00_0010_0040));
            assert_eq!(enclosing(0x7f00_0010_0000), None);
            assert_eq!(all(&blocks, granule), [(0x7f00_0010_0010, 20), (0x7f00_0010_0040, 100)]);
            assert_eq!(blocks.remove(granule, 0x7f00_0010_0010), Some(block(20, 24)));
            assert_eq!(blocks.remove(granule, 0x7f00_0010_0010), None);
            assert_eq!(blocks.remove(granule, 0x7f00_0010_0050), None);
            assert_eq!(all(&blocks, granule), [(0x7f00_0010_0040, 100)]);
        }
    }

    #[test]
    fn a_huge_block_is_found_from_its_far_end() {
        let blocks = Box::new(Blocks::new());
        let (start, size) = (0x5500_0000_0010, 100 << 20);
        blocks.insert(GLIBC, start, block(size, size + 4000));
        let enclosing = |address| {
            blocks.enclosing(GLIBC, address).map(|(start, block, _)| (start, block.usable))
        };
        assert_eq!(enclosing(start + size), Some((start, size + 4000)));
        assert_eq!(enclosing(start + size + 4000), None);
        assert_eq!(blocks.remove(GLIBC, start), Some(block(size, size + 4000)));
        assert_eq!(enclosing(start + size), None);
        assert_eq!(enclosing(start), None);
    }

    #[test]
    fn addresses_past_the_end_are_lost_and_counted() {
        let blocks = Box::new(Blocks::new());
        blocks.insert(GLIBC, sys::ADDRESS_END, block(1, 24));
        assert_eq!((blocks.lost(), blocks.remove(GLIBC, sys::ADDRESS_END)), (1, None));
    }

    #[test]
    fn only_the_generation_that_is_to_be_used_again_grows_old() {
        let blocks = Box::new(Blocks::new());
        let second = Generation::FIRST.next();
        blocks.insert(GLIBC, 0x1000, block(1, 24));
        blocks.insert(GLIBC, 0x2000, Block { birth: second, ..block(2, 24) });
        blocks.age(GLIBC, Generation::FIRST);
        let mut births = Vec::new();
        blocks.for_each(GLIBC, |_, block, _| births.push(block.birth));
        assert_eq!(births, [Generation::from_number(0), second]);
    }

    #[test]
    fn ageing_gives_way_to_the_owner() {
        let blocks = Box::new(Blocks::new());
        let (old, new) = (Generation::FIRST, Generation::FIRST.next());
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    blocks.age(GLIBC, old);
                }
            });
            for turn in 0..200_000 {
                blocks.insert(GLIBC, 0x1000, Block { birth: old, ..block(1, 24) });
                let taken = blocks.remove(GLIBC, 0x1000).map(|block| block.requested);
                assert_eq!(taken, Some(1), "{turn}");
                blocks.insert(GLIBC, 0x1000, Block { birth: new, ..block(2, 24) });
                assert_eq!(
                    blocks.remove(GLIBC, 0x1000).map(|block| block.birth),
                    Some(new),
                    "{turn}"
                );
            }
            is_done.store(true, Relaxed);
        });
        assert!(all(&blocks, GLIBC).is_empty());
    }
}
