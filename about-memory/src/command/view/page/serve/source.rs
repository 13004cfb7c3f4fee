//! What can be measured from the page: a running program.

use crate::error::Failure;
use std::fmt::Debug;

/// A program that answers while it runs.
pub trait Source: Debug + Send + Sync {
    /// How it is called, with its number.
    fn name(&self) -> String;

    /// Has it measure itself, with a dump of DMD where one is wanted and DMD is awake.
    ///
    /// # Errors
    /// When it does not answer, or has nothing to say.
    fn measure(&self, with_dump: bool) -> Result<Measured, Failure>;

    /// The memory report files that it keeps of its own past, oldest first.
    ///
    /// # Errors
    /// When it does not answer.
    fn history(&self) -> Result<Vec<Vec<u8>>, Failure> {
        Ok(Vec::new())
    }

    /// Has it give back what memory it can.
    ///
    /// # Errors
    /// When it does not answer, or cannot.
    fn minimize(&self) -> Result<(), Failure>;
}

/// What a program has measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// A memory report file.
    pub report: Vec<u8>,
    /// DMD's dump of the same snapshot, where it is awake.
    pub dump: Option<Vec<u8>>,
}
