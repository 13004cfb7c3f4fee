//! The parts of protocol buffers that profiles need: varints, messages, packed lists.

/// The bytes of a message.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Adds a number. 0 is left out: readers take it for a number that is missing.
    pub(super) fn number(&mut self, field: u64, value: u64) -> &mut Self {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    /// Adds a signed number, encoded as `int64`. Negative ones take ten bytes.
    pub(super) fn signed(&mut self, field: u64, value: i64) -> &mut Self {
        self.number(field, value.cast_unsigned())
    }

    /// Adds a message within this one.
    pub(super) fn message(&mut self, field: u64, message: &Message) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// Adds a text or other bytes. An empty text is written, too.
    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a packed list of numbers.
    pub(super) fn packed(&mut self, field: u64, values: impl Iterator<Item = u64>) -> &mut Self {
        let mut list = Message::default();
        values.for_each(|value| list.varint(value));
        self.message(field, &list)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            // The low seven bits, and a bit for more to follow.
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn numbers_and_messages_are_as_the_encoding_says() {
        let mut inner = Message::default();
        inner.number(1, 150).number(2, 0);
        let mut message = Message::default();
        message.message(3, &inner).packed(4, [3, 270, 86942].into_iter()).bytes(2, b"testing");
        let expected = [
            &[0x1a, 0x03, 0x08, 0x96, 0x01][..],
            &[0x22, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05],
            &[0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g'],
        ];
        assert_eq!(message.into_bytes(), expected.concat());
        let mut negative = Message::default();
        negative.signed(1, -1);
        assert_eq!(negative.into_bytes(), [[0x08].as_slice(), &[0xff; 9], &[0x01]].concat());
    }
}
