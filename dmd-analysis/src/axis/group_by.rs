//! Several axes, one within the other: `reporter:2,type,stack:3`.

use std::str::FromStr;

use super::{Axis, AxisError};

/// The axes that blocks are grouped by, the outermost first. No axis is there twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBy {
    axes: Vec<Axis>,
}

impl GroupBy {
    /// Groups by these axes, each within the one before.
    ///
    /// # Errors
    ///
    /// Returns [`AxisError::Repeated`] if one of them is there twice.
    pub fn new(axes: Vec<Axis>) -> Result<Self, AxisError> {
        for (at, axis) in axes.iter().enumerate() {
            let name = axis.name();
            if axes[..at].iter().any(|before| before.name() == name) {
                return Err(AxisError::Repeated { name });
            }
        }
        Ok(Self { axes })
    }

    /// Returns the axes, the outermost first.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the axes if the names of all are among `supported`.
    ///
    /// # Errors
    ///
    /// Returns [`AxisError::Unsupported`] with the names that are supported.
    pub fn each_of(self, supported: &'static [&'static str]) -> Result<Self, AxisError> {
        let axes: Result<_, _> = self.axes.into_iter().map(|axis| axis.one_of(supported)).collect();
        Ok(Self { axes: axes? })
    }
}

impl FromStr for GroupBy {
    type Err = AxisError;

    /// Reads the words for axes, separated by commas.
    fn from_str(words: &str) -> Result<Self, AxisError> {
        let axes: Result<_, _> = words.split(',').map(str::parse).collect();
        Self::new(axes?)
    }
}
