//! Reads JSON strings with their escapes, eight bytes at a time.

use super::{Json, shown};
use crate::snapshot::read::ReadError;

impl Json<'_> {
    /// Reads a string into `text`, and replaces its content.
    pub(in crate::snapshot::read) fn string(&mut self, text: &mut String) -> Result<(), ReadError> {
        self.expect(b'"')?;
        let mut raw = std::mem::take(text).into_bytes();
        raw.clear();
        self.string_rest(&mut raw)?;
        *text = match String::from_utf8(raw) {
            Ok(valid) => valid,
            Err(invalid) => String::from_utf8_lossy(invalid.as_bytes()).into_owned(),
        };
        Ok(())
    }

    fn string_rest(&mut self, raw: &mut Vec<u8>) -> Result<(), ReadError> {
        loop {
            let unread = &self.buffer[self.next..self.filled];
            let plain = find_special(unread);
            let taken = &unread[..plain.unwrap_or(unread.len())];
            if self.options.utf8 || taken.is_ascii() {
                raw.extend_from_slice(taken);
            } else {
                taken.iter().for_each(|&byte| push(raw, u32::from(byte)));
            }
            self.next += taken.len();
            if raw.len() > self.options.string {
                return Err(ReadError::LongString {
                    limit: self.options.string,
                    offset: self.offset(),
                });
            }
            if plain.is_none() {
                self.peek()?
                    .ok_or_else(|| self.fault("the text ends here, in the middle of a string"))?;
                continue;
            }
            match self.take()? {
                b'"' => return Ok(()),
                b'\\' => self.escape(raw)?,
                byte => {
                    return Err(
                        self.fault(format!("{} may not stand in a string as it is", shown(byte)))
                    );
                }
            }
        }
    }

    fn escape(&mut self, raw: &mut Vec<u8>) -> Result<(), ReadError> {
        let plain = match self.take()? {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut unit = self.four_hex_digits()?;
                // A high surrogate takes the low one that follows it. A single surrogate is no
                // character.
                while (0xD800..0xDC00).contains(&unit) && self.peek()? == Some(b'\\') {
                    self.next += 1;
                    if self.peek()? != Some(b'u') {
                        push(raw, unit);
                        return self.escape(raw);
                    }
                    self.next += 1;
                    let low = self.four_hex_digits()?;
                    if (0xDC00..0xE000).contains(&low) {
                        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    } else {
                        push(raw, unit);
                        unit = low;
                    }
                }
                push(raw, unit);
                return Ok(());
            }
            byte => {
                return Err(self.fault(format!("a backslash before {} means nothing", shown(byte))));
            }
        };
        raw.push(plain);
        Ok(())
    }

    fn four_hex_digits(&mut self) -> Result<u32, ReadError> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.take()?;
            let digit = char::from(byte)
                .to_digit(16)
                .ok_or_else(|| self.fault("four hexadecimal digits expected"))?;
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}

/// Returns the position of the first quote, backslash or control character. It reads eight bytes at
/// a time, because most of the time is spent here.
fn find_special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = ONES << 7;
    // Sets a bit in each byte below `limit`, which is at most 128. A byte above a hit may be set by
    // mistake.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let mut words = bytes.chunks_exact(8);
    for (index, word) in words.by_ref().enumerate() {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let (quotes, backslashes) =
            (word ^ (ONES * u64::from(b'"')), word ^ (ONES * u64::from(b'\\')));
        let found = below(quotes, 1) | below(backslashes, 1) | below(word, 0x20);
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let is_special = |&byte: &u8| byte == b'"' || byte == b'\\' || byte < 0x20;
    let rest = words.remainder();
    rest.iter().position(is_special).map(|index| bytes.len() - rest.len() + index)
}

fn push(raw: &mut Vec<u8>, unit: u32) {
    let character = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
    raw.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}
