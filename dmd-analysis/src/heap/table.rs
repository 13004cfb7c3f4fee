//! A table that interns values, as file formats need them: numbers in the order of first use.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Interned values and their numbers, from 0 on.
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
    /// Returns the number of a value. A new value gets the next number.
    pub(crate) fn number(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(value.clone()).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        number
    }

    /// Returns the values in the order of their numbers.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
}
