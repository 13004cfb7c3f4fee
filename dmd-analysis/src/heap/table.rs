//! Values numbered in the order in which they are met, as the tables of file formats have them.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values, each once, and their numbers from 0.
#[derive(Debug)]
pub(crate) struct Table<T> {
    values: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// The number of a value, which is the next one if it has not been met.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        number
    }

    /// The values by number.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
}
