//! The pages that the service keeps, and a reporter for them.

use std::sync::{Mutex, PoisonError};

use memreport::MallocSizeOf;

/// Pages by the order in which they came.
#[derive(Default, MallocSizeOf)]
struct Pages {
    pages: Vec<Box<[u8]>>,
}

static PAGES: Mutex<Option<Pages>> = Mutex::new(None);

memreport::reporter!("explicit/pages", PAGES, "Pages that the service keeps.");

/// Bytes of a page.
const PAGE: usize = 4096;

/// Keeps so many pages more, and says how many there are.
pub(crate) fn keep(count: usize) -> String {
    let mut pages = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let pages = &mut pages.get_or_insert_default().pages;
    pages.extend((0..count).map(|_| new_page()));
    format!("{}\n", pages.len())
}

#[inline(never)]
fn new_page() -> Box<[u8]> {
    vec![b' '; PAGE].into()
}
