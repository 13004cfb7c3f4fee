//! Reads packed events. The guide's page on formats describes the bytes.

/// A packed event, with the microseconds since the line or event before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    Allocated {
        address: u64,
        site: u32,
        requested: u64,
        usable: u64,
        weight: f64,
    },
    /// The site is 0 if it is not known. Version 1 does not state the usable bytes.
    Freed {
        address: u64,
        thread: u32,
        usable: Option<u64>,
        site: u32,
    },
}

const ALLOCATED: u8 = 0;
const FREED: u8 = 1;
const KIND: u8 = 3;
/// A weight follows the numbers of an allocation, a site those of a free.
const HAS_MORE: u8 = 1 << 2;
const SINCE_AT: u32 = 3;
const LONG: u8 = 31;

/// The reason why an event cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Defect {
    /// The bytes end in the middle of it.
    Cut,
    Wrong(String),
}

/// A reader of packed events, which come in several pieces.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// The address of the last event.
    address: u64,
}

impl Unpacked {
    /// Reads the events of a piece in their order.
    ///
    /// # Errors
    /// Returns the first defect, of an event or of `each`.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(u64, Event) -> Result<(), String>,
    ) -> Result<(), Defect> {
        while !bytes.is_empty() {
            let (since, event) = self.next(&mut bytes)?;
            each(since, event).map_err(Defect::Wrong)?;
        }
        Ok(())
    }

    fn next(&mut self, bytes: &mut &[u8]) -> Result<(u64, Event), Defect> {
        let [head] = take(bytes)?;
        let short = head >> SINCE_AT;
        let since = match short {
            LONG => u64::from(LONG).saturating_add(number(bytes)?),
            short => u64::from(short),
        };
        let step = number(bytes)?;
        // The lowest bit is the sign.
        let step = (step >> 1) ^ (step & 1).wrapping_neg();
        let address = self.address.wrapping_add(step);
        let small = |number: u64, what| u32::try_from(number).map_err(|_| wrong(what));
        let event = match head & KIND {
            ALLOCATED => {
                let site = small(number(bytes)?, "a site has more than 32 bits")?;
                let requested = number(bytes)?;
                let usable = requested.wrapping_add(number(bytes)?);
                let weight = match head & HAS_MORE {
                    0 => 1.0,
                    _ => {
                        let weight = f64::from_le_bytes(take(bytes)?);
                        checked_weight(Some(weight)).map_err(Defect::Wrong)?
                    }
                };
                Event::Allocated { address, site, requested, usable, weight }
            }
            FREED => {
                let thread = small(number(bytes)?, "a thread has more than 32 bits")?;
                let usable = Some(number(bytes)?);
                let site = match head & HAS_MORE {
                    0 => 0,
                    _ => small(number(bytes)?, "a site has more than 32 bits")?,
                };
                Event::Freed { address, thread, usable, site }
            }
            _ => return Err(wrong("an event of an unknown kind")),
        };
        self.address = address;
        Ok((since, event))
    }
}

/// Returns the weight of a block: the number of blocks that it represents, itself included.
pub(super) fn checked_weight(weight: Option<f64>) -> Result<f64, String> {
    weight
        .filter(|weight| weight.is_finite() && *weight >= 1.0)
        .ok_or_else(|| "the weight of a block is no number from 1 on".to_owned())
}

fn wrong(problem: &str) -> Defect {
    Defect::Wrong(problem.to_owned())
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Defect> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(Defect::Cut)?;
    *bytes = rest;
    Ok(*taken)
}

/// Reads a number of 7 bits a byte, the lowest first.
#[inline]
fn number(bytes: &mut &[u8]) -> Result<u64, Defect> {
    // Most numbers are small.
    match bytes.split_first() {
        Some((byte, rest)) if *byte < 0x80 => {
            *bytes = rest;
            Ok(u64::from(*byte))
        }
        _ => long_number(bytes),
    }
}

fn long_number(bytes: &mut &[u8]) -> Result<u64, Defect> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let [byte] = take(bytes)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(wrong("a number has more than 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes as in the test of the writer, and an event with a weight.
    fn bytes() -> Vec<u8> {
        let mut bytes = vec![3 << 3, 0x80, 0x40, 0xac, 0x02, 100, 4];
        bytes.extend([31 << 3 | 1, 0, 63, 5, 104]);
        bytes.extend([HAS_MORE, 2, 1, 8, 0]);
        bytes.extend(2.5_f64.to_le_bytes());
        bytes.extend([HAS_MORE | 1, 0, 5, 8, 7]);
        bytes
    }

    #[test]
    fn what_was_packed_is_read() {
        let (mut unpacked, mut events) = (Unpacked::default(), Vec::new());
        unpacked
            .read(&bytes(), |since, event| {
                events.push((since, event));
                Ok(())
            })
            .unwrap();
        let block = |address, site, requested, usable, weight| Event::Allocated {
            address,
            site,
            requested,
            usable,
            weight,
        };
        assert_eq!(
            events,
            [
                (3, block(4096, 300, 100, 104, 1.0)),
                (31, Event::Freed { address: 4064, thread: 5, usable: Some(104), site: 0 }),
                (0, block(4065, 1, 8, 8, 2.5)),
                (0, Event::Freed { address: 4065, thread: 5, usable: Some(8), site: 7 }),
            ]
        );
    }

    #[test]
    fn a_block_represents_itself_at_least() {
        for weight in [0.5, 0.0, -3.0, f64::NAN, f64::INFINITY] {
            let mut bytes = vec![HAS_MORE, 2, 1, 8, 0];
            bytes.extend(weight.to_le_bytes());
            let read = Unpacked::default().read(&bytes, |_, _| Ok(()));
            assert_eq!(read, Err(wrong("the weight of a block is no number from 1 on")));
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let all = bytes();
        for length in 1..all.len() {
            let mut count = 0;
            let read = Unpacked::default().read(&all[..length], |_, _| {
                count += 1;
                Ok(())
            });
            let is_between = [7, 12, 25].contains(&length);
            assert_eq!(read, if is_between { Ok(()) } else { Err(Defect::Cut) }, "{length}");
        }
        for (bytes, why) in [
            (&[2, 0, 0, 0, 0][..], "an event of an unknown kind"),
            (&[0xff; 16], "a number has more than 64 bits"),
            (&[1, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0], "a thread has more than 32 bits"),
        ] {
            let read = Unpacked::default().read(bytes, |_, _| Ok(()));
            assert_eq!(read, Err(wrong(why)));
        }
    }
}
