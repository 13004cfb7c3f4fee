//! Defines the programs that the page can measure.

use crate::error::Failure;
use std::fmt::Debug;

/// A program that answers while it runs.
pub trait Source: Debug + Send + Sync {
    /// Returns its name, with its pid.
    fn name(&self) -> String;

    /// Measures the program, with a dump of DMD if `with_dump` is set and DMD is on.
    ///
    /// # Errors
    /// The program does not answer, or refuses.
    fn measure(&self, with_dump: bool) -> Result<Measured, Failure>;

    /// Measures the program without private words, which its reporters replace.
    ///
    /// # Errors
    /// The program does not answer, or cannot.
    fn measure_anonymized(&self) -> Result<Measured, Failure> {
        Err("this program cannot leave private words out".into())
    }

    /// Returns the report files that it saved itself, oldest first.
    ///
    /// # Errors
    /// The program does not answer.
    fn history(&self) -> Result<Vec<Vec<u8>>, Failure> {
        Ok(Vec::new())
    }

    /// Asks it to release caches and unused heap.
    ///
    /// # Errors
    /// The program does not answer, or cannot.
    fn minimize(&self) -> Result<(), Failure>;

    /// Begins to track its blocks, or stops.
    ///
    /// # Errors
    /// The program does not answer, or has no tracker.
    fn track(&self, _is_on: bool) -> Result<(), Failure> {
        Err("this program cannot be tracked".into())
    }
}

/// The measurement of a program.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// A memory report file.
    pub report: Vec<u8>,
    /// DMD's dump of the same moment, if DMD is on.
    pub dump: Option<Vec<u8>>,
}
