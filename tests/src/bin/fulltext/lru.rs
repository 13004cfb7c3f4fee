//! A cache that evicts the least recently used entries.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::hash::Hash;

use memreport::MallocSizeOf;

/// A cache of values by key, up to a total weight. Entries form a linked list from newest to
/// oldest.
#[derive(Debug, MallocSizeOf)]
pub(crate) struct Lru<K, V> {
    places: HashMap<K, usize>,
    entries: Vec<Entry<K, V>>,
    newest: Option<usize>,
    oldest: Option<usize>,
    weight: usize,
    limit: usize,
}

#[derive(Debug, MallocSizeOf)]
struct Entry<K, V> {
    key: K,
    value: V,
    weight: usize,
    newer: Option<usize>,
    older: Option<usize>,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Lru {
            places: HashMap::new(),
            entries: Vec::new(),
            newest: None,
            oldest: None,
            weight: 0,
            limit,
        }
    }

    /// Returns the value of this key and makes it the newest.
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        let place = *self.places.get(key)?;
        self.unlink(place);
        self.link_newest(place);
        Some(&self.entries[place].value)
    }

    /// Inserts a value, and evicts old ones until the weight is within the limit. A value heavier
    /// than the limit is not kept.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        if let Some(place) = self.places.get(&key) {
            self.remove(*place);
        }
        if weight > self.limit {
            return;
        }
        while let Some(oldest) = self.oldest.filter(|_| self.weight + weight > self.limit) {
            self.remove(oldest);
        }
        let place = self.entries.len();
        self.places.insert(key.clone(), place);
        self.entries.push(Entry { key, value, weight, newer: None, older: None });
        self.weight += weight;
        self.link_newest(place);
    }

    fn remove(&mut self, place: usize) {
        self.unlink(place);
        let entry = self.entries.swap_remove(place);
        self.places.remove(&entry.key);
        self.weight -= entry.weight;
        // The last entry has moved to the place of the removed one.
        if let Some(Entry { key, newer, older, .. }) = self.entries.get(place) {
            if let Some(known) = self.places.get_mut(key) {
                *known = place;
            }
            let (newer, older) = (*newer, *older);
            *self.older_of(newer) = Some(place);
            *self.newer_of(older) = Some(place);
        }
    }

    fn unlink(&mut self, place: usize) {
        let Entry { newer, older, .. } = self.entries[place];
        *self.older_of(newer) = older;
        *self.newer_of(older) = newer;
    }

    fn link_newest(&mut self, place: usize) {
        let second = self.newest.replace(place);
        self.entries[place].newer = None;
        self.entries[place].older = second;
        *self.newer_of(second) = Some(place);
    }

    /// Returns the link from this entry to the next older one; without an entry, the link to the
    /// newest.
    fn older_of(&mut self, place: Option<usize>) -> &mut Option<usize> {
        match place {
            Some(place) => &mut self.entries[place].older,
            None => &mut self.newest,
        }
    }

    fn newer_of(&mut self, place: Option<usize>) -> &mut Option<usize> {
        match place {
            Some(place) => &mut self.entries[place].newer,
            None => &mut self.oldest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lru: &Lru<String, Vec<u8>>) -> String {
        let (mut keys, mut place) = (Vec::new(), lru.newest);
        while let Some(entry) = place.map(|place| &lru.entries[place]) {
            keys.push(entry.key.as_str());
            place = entry.older;
        }
        assert_eq!(keys.len(), lru.places.len());
        keys.join(" ")
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut lru = Lru::new(10);
        let put = |lru: &mut Lru<_, _>, key: &str, weight| {
            lru.insert(key.to_owned(), vec![1; weight], weight);
        };
        for (key, weight, kept) in [
            ("a", 4, "a"),
            ("b", 4, "b a"),
            ("c", 2, "c b a"),
            ("d", 1, "d c b"),
            ("b", 5, "b d c"),
            ("huge", 11, "b d c"),
            ("e", 9, "e"),
            ("f", 1, "f e"),
        ] {
            put(&mut lru, key, weight);
            assert_eq!(keys(&lru), kept, "after {key}");
        }
        assert_eq!(lru.get(&"e".to_owned()).map(Vec::len), Some(9));
        assert_eq!(keys(&lru), "e f");
        assert_eq!(lru.get(&"a".to_owned()), None);
        dmd::assert_fully_reported!(lru);
    }

    #[test]
    fn a_cache_that_was_emptied_reports_its_table() {
        let mut lru = Lru::new(1);
        lru.insert("a".to_owned(), vec![1_u8], 1);
        lru.insert("a".to_owned(), vec![2_u8], 2);
        assert!(lru.entries.is_empty());
        dmd::assert_fully_reported!(lru);
    }
}
