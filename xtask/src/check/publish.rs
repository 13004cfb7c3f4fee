//! Checks before something is published: public items, versions, dependencies, packages, releases,
//! workflows.

pub(crate) mod api;
pub(crate) mod semver;
pub(crate) mod deny;
pub(crate) mod package;
pub(crate) mod release;
pub(crate) mod workflows;
