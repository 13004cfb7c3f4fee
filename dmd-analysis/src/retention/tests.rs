//! Retention: the texts of small dumps, and random graphs compared with a brute-force oracle.

mod oracle;
mod shown;
pub(crate) mod random;
