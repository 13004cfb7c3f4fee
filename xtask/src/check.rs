//! Checks that need nothing but the workspace: the steps of CI, features, sanitizers, fuzzing,
//! mutants, packages, releases, all of that by night, and the house rules.

pub(crate) mod ci;
pub(crate) mod features;
pub(crate) mod fuzz;
#[cfg(feature = "measure")]
pub(crate) mod mutants;
pub(crate) mod nightly;
pub(crate) mod platforms;
pub(crate) mod publish;
pub(crate) mod sanitize;
pub(crate) mod tidy;
