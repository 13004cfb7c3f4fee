//! Splits the requests of `about-memory run` into lines, without allocating.

use std::io::{self, Read};

/// A buffer of received bytes up to the end of a line. A line that is too long is cut.
pub(super) struct LineBuffer {
    bytes: [u8; 256],
    length: usize,
}

impl Default for LineBuffer {
    fn default() -> Self {
        LineBuffer { bytes: [0; 256], length: 0 }
    }
}

impl LineBuffer {
    /// Reads the available bytes, and calls `take` with each complete line.
    ///
    /// # Errors
    ///
    /// If the connection ends or fails.
    pub(super) fn read(
        &mut self,
        from: &mut impl Read,
        mut take: impl FnMut(&str),
    ) -> io::Result<()> {
        let mut received = [0; 256];
        let count = from.read(&mut received)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for byte in &received[..count] {
            if *byte == b'\n' {
                take(std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default());
                self.length = 0;
            } else if let Some(slot) = self.bytes.get_mut(self.length) {
                *slot = *byte;
                self.length += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_complete_however_they_are_received() {
        let mut line = LineBuffer::default();
        let mut seen = Vec::new();
        for piece in ["snap", "shot now\npe", "ak\n", "\n"] {
            line.read(&mut piece.as_bytes(), |request| seen.push(request.to_owned())).unwrap();
        }
        assert_eq!(seen, ["snapshot now", "peak", ""]);
        assert!(line.read(&mut io::empty(), |_| ()).is_err());
        let long = "x".repeat(1000);
        line.read(&mut long.as_bytes(), |_| panic!("no line yet")).unwrap();
    }
}
