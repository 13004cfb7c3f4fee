//! Checks that need nothing but the workspace: the steps of CI, features, and the house rules.

pub(crate) mod ci;
pub(crate) mod features;
pub(crate) mod tidy;
