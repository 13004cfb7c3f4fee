//! The fields that reporters visited or skipped in a collection, each once.

use memreport::Field;

use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;

/// The number of fields whose index is cached.
const RECENT: usize = 16;

/// The visited fields, each with an index.
#[derive(Debug)]
pub(super) struct VisitedFields {
    /// Addresses of the fields' constants.
    indexes: LocalInterner<usize>,
    list: PageList<&'static Field>,
    /// A direct-mapped cache of addresses and indexes: a skipped field comes with each value.
    recent: [(usize, usize); RECENT],
}

impl VisitedFields {
    pub(super) const fn new() -> Self {
        VisitedFields {
            indexes: LocalInterner::new(),
            list: PageList::new(),
            recent: [(0, 0); RECENT],
        }
    }

    /// Adds a field, unless it is known. Returns its index, or `None` if memory is short.
    pub(super) fn add(&mut self, field: &'static Field) -> Option<usize> {
        let address = std::ptr::from_ref(field).addr();
        let recent = &mut self.recent[address / align_of::<Field>() % RECENT];
        if recent.0 != address {
            let index = self.indexes.intern(address)? as usize;
            if index == self.list.as_slice().len() && !self.list.push(field) {
                return None;
            }
            *recent = (address, index);
        }
        Some(recent.1)
    }

    pub(super) fn into_list(self) -> PageList<&'static Field> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Field = Field::of::<VisitedFields>("indexes", file!(), line!());

    #[test]
    fn fields_are_numbered_in_the_order_of_their_first_visit() {
        // More than the cache has places, each at an address of its own.
        static FIELDS: [Field; 3 * RECENT] = [const { FIRST }; 3 * RECENT];
        let mut fields = VisitedFields::new();
        for _ in 0..2 {
            for (index, field) in FIELDS.iter().enumerate() {
                assert_eq!(fields.add(field), Some(index));
                assert_eq!(fields.add(field), Some(index));
            }
        }
        let list = fields.into_list();
        assert!(list.as_slice().iter().zip(&FIELDS).all(|(one, other)| std::ptr::eq(*one, other)));
        assert_eq!(list.as_slice().len(), FIELDS.len());
    }
}
