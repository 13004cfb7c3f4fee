//! A stream of numbers that is the same in every run (xorshift64*).

/// Numbers that look random.
#[derive(Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Always the same stream for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Numbers(seed | 1)
    }

    /// The next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.word() >> 33) % end
    }

    /// The next index into a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
