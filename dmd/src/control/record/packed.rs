//! Packs the events of a recording into a few bytes each. The guide's page on formats describes
//! the bytes.

use crate::event::events::{Event, TimedEvent};
use crate::stack::site::SiteId;

/// The kinds of events, in the lowest two bits of the first byte.
const ALLOCATED: u8 = 0;
const FREED: u8 = 1;

/// Set if a weight follows the numbers of an allocation, or a site those of a free.
const HAS_MORE: u8 = 1 << 2;

/// The place of the microseconds in the first byte, and the number that means that more follow.
const SINCE_AT: u32 = 3;
const LONG: u64 = 31;

/// Packed events that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// The address of the last event.
    address: u64,
}

impl Packed {
    /// Appends an event, with the microseconds since the line or event before.
    pub(super) fn push(&mut self, since: u64, happened: &TimedEvent) {
        match happened.event {
            Event::Allocated { address, block } => {
                let weight = block.rate.weight(block.usable);
                let flag = if weight > 1.0 { HAS_MORE } else { 0 };
                self.begin(ALLOCATED | flag, since, address);
                self.number(u64::from(block.site.number()));
                self.number(block.requested as u64);
                // No block is smaller than requested; if one were, the number would wrap.
                self.number((block.usable as u64).wrapping_sub(block.requested as u64));
                if weight > 1.0 {
                    self.bytes.extend_from_slice(&weight.to_le_bytes());
                }
            }
            Event::Freed { address, block, freed_at } => {
                let flag = if freed_at == SiteId::UNKNOWN { 0 } else { HAS_MORE };
                self.begin(FREED | flag, since, address);
                self.number(u64::from(happened.thread));
                self.number(block.usable as u64);
                if freed_at != SiteId::UNKNOWN {
                    self.number(u64::from(freed_at.number()));
                }
            }
        }
    }

    /// Takes the bytes of all events since the last call.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the events that were written.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn begin(&mut self, kind: u8, since: u64, address: usize) {
        let short = since.min(LONG);
        self.bytes.push(kind | (short as u8) << SINCE_AT);
        if short == LONG {
            self.number(since - LONG);
        }
        let address = address as u64;
        let step = address.wrapping_sub(self.address).cast_signed();
        self.address = address;
        // Small steps in both directions become small numbers.
        self.number((step << 1 ^ step >> 63).cast_unsigned());
    }

    /// Appends a number in groups of 7 bits, the lowest first. The high bit means that more follow.
    #[expect(clippy::cast_possible_truncation, reason = "7 bits")]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::rate::SamplingRate;
    use crate::table::epoch::Epoch;
    use crate::table::packed_block::Block;

    #[test]
    fn events_have_the_bytes_that_the_guide_describes() {
        let block = Block {
            requested: 100,
            usable: 104,
            site: SiteId::from_number(300),
            epoch: Epoch::from_number(0),
            rate: SamplingRate::EVERY,
            time: 0,
        };
        let mut packed = Packed::default();
        let mut push = |since, event| packed.push(since, &TimedEvent { time: 0, thread: 5, event });
        push(3, Event::Allocated { address: 4096, block });
        push(31, Event::Freed { address: 4064, block, freed_at: SiteId::UNKNOWN });
        push(0, Event::Freed { address: 4064, block, freed_at: SiteId::from_number(7) });
        assert_eq!(
            packed.bytes(),
            [
                [3 << 3, 0x80, 0x40, 0xac, 0x02, 100, 4].as_slice(),
                &[31 << 3 | 1, 0, 63, 5, 104],
                &[HAS_MORE | 1, 0, 5, 104, 7],
            ]
            .concat()
        );
        packed.clear();
        assert!(packed.bytes().is_empty());
    }
}
