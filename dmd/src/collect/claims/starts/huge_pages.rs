//! Decides where the copy of the table is in huge pages.
//!
//! Claims read the copy at random, and wait for the translation of its addresses. But where blocks
//! lie far apart, a huge page would be mostly empty.

use crate::mem::sys;

/// The last bytes that were written to the copy.
#[derive(Debug, Default)]
pub(super) struct LastBytes {
    /// The last address, in pages.
    page: usize,
    /// The pages that were written of the huge page in which it lies.
    pages: usize,
    /// True if that one is preferred to small pages.
    is_huge: bool,
}

/// Huge pages to request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Huge {
    None,
    /// The huge page that begins with the byte.
    This,
    /// That one, and the one before, which has small pages.
    Both,
}

impl LastBytes {
    /// Advances to a byte at a higher address. If it is the first one written in a huge page, and
    /// at least a quarter of the pages of the huge page before were written, returns huge pages.
    #[inline]
    pub(super) fn advance(&mut self, address: usize) -> Huge {
        let page = address / sys::PAGE;
        if page == self.page { Huge::None } else { self.enter_page(page) }
    }

    fn enter_page(&mut self, page: usize) -> Huge {
        const PAGES: usize = sys::HUGE_PAGE / sys::PAGE;
        let huge_pages = page / PAGES - self.page / PAGES;
        self.page = page;
        if huge_pages == 0 {
            self.pages += 1;
            return Huge::None;
        }
        let is_behind_dense = huge_pages == 1 && self.pages >= PAGES / 4;
        let was_huge = std::mem::replace(&mut self.is_huge, is_behind_dense);
        self.pages = 1;
        match is_behind_dense {
            false => Huge::None,
            true if was_huge => Huge::This,
            true => Huge::Both,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_pages_and_the_next_one_are_huge() {
        const PAGES: usize = sys::HUGE_PAGE / sys::PAGE;
        let mut last = LastBytes::default();
        let first = 7 * PAGES;
        // Pages, and the huge pages that the first byte of each is the reason for.
        let dense = (0..PAGES / 4).map(|page| (first + page, Huge::None));
        let next = [(first + PAGES + 3, Huge::Both), (first + PAGES + 4, Huge::None)];
        let sparse = [(first + 2 * PAGES, Huge::None), (first + 3 * PAGES, Huge::None)];
        let far = (0..PAGES).map(|page| (first + 9 * PAGES + page, Huge::None));
        let behind_far = [(first + 11 * PAGES, Huge::None)];
        let many = (1..PAGES).map(|page| (first + 11 * PAGES + page, Huge::None));
        let more = (0..PAGES).map(|page| {
            (first + 12 * PAGES + page, if page == 0 { Huge::Both } else { Huge::None })
        });
        let last_one = [(first + 13 * PAGES, Huge::This)];
        let all = dense.chain(next).chain(sparse).chain(far).chain(behind_far);
        for (page, expected) in all.chain(many).chain(more).chain(last_one) {
            let address = page * sys::PAGE + 8;
            assert_eq!(last.advance(address), expected, "{page}");
            assert_eq!(last.advance(address + 8), Huge::None, "{page}");
        }
    }
}
