//! Parses frames with an address: `#00: ???[/usr/bin/program +0x1a2b]`.

/// An address within a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    pub(crate) module: &'a str,
    pub(crate) offset: u64,
}

impl<'a> Address<'a> {
    /// Returns the address in the text of a frame, or `None` if it was symbolicated already.
    pub(crate) fn parse(frame: &'a str) -> Option<Self> {
        let (_, text) = frame.split_once(": ")?;
        Self::of_text(text)
    }

    /// Returns the address in the text of a frame without its number.
    pub(crate) fn of_text(text: &'a str) -> Option<Self> {
        let (before, offset) = text.strip_suffix(']')?.rsplit_once(" +0x")?;
        let (_function, module) = before.split_once('[')?;
        Some(Self { module, offset: u64::from_str_radix(offset, 16).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn frames_with_an_address_are_recognised() {
        let table = [
            ("#00: ???[/usr/bin/program +0x1a2b]", Some(("/usr/bin/program", 0x1a2b))),
            ("#00: malloc[/lib/libc.so.6 +0xFF]", Some(("/lib/libc.so.6", 0xff))),
            ("#00: ???[/a [b] c +0x1]", Some(("/a [b] c", 1))),
            ("#00: main (src/main.rs:12)", None),
            ("#00: <[u8; 4]>::len (core.rs:1)", None),
            ("#00: f[x.rs:1]", None),
            ("#00: ???[/a +0xzz]", None),
            ("", None),
        ];
        for (frame, expected) in table {
            let parsed = Address::parse(frame);
            let parsed = parsed.map(|address| (address.module, address.offset));
            assert_eq!(parsed, expected, "{frame}");
        }
    }
}
