//! `--only`: blocks by how often they are reported.

use clap::ValueEnum;
use memreport_analysis::analysis::Class;

/// How often blocks are reported.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OnlyArg {
    /// Not at all: dark matter
    Unreported,
    /// Once
    Once,
    /// Twice or more
    Twice,
}

impl OnlyArg {
    /// The class of such blocks.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Self::Unreported => Class::Unreported,
            Self::Once => Class::OnceReported,
            Self::Twice => Class::TwiceReported,
        }
    }
}
