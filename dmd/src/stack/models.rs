//! A loom model of the cache of stacks. See `mem::models` for how to run it.

use std::sync::Arc;

use loom::thread;

use super::stack_cache::{StackCache, StackHash};
use crate::mem::interner::Interner;
use crate::mem::models::model;
use crate::table::packed_block::SiteId;

/// Fails if `StackCache` stores or loads the word with the site relaxed.
#[test]
fn a_thread_that_finds_a_site_sees_its_content() {
    model(3, || {
        let shared = Arc::new((StackCache::new(), Interner::new(100)));
        let hash = |frame| StackHash::EMPTY.with_frame(frame);
        // The cache is mapped before, so that this does not order what follows.
        shared.0.insert(hash(1), SiteId::from_number(99));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (cache, sites) = &*shared;
                cache.insert(hash(2), SiteId::from_number(sites.intern((0, 7))));
            })
        };
        let (cache, sites) = &*shared;
        if let Some(site) = cache.get(hash(2)) {
            assert_eq!(sites.get(site.number()), Some((0, 7)));
        }
        writer.join().unwrap();
        assert!(cache.get(hash(2)).is_some());
    });
}
