//! Checks before something is published: public items, versions, packages, releases, workflows.

pub(crate) mod api;
pub(crate) mod semver;
pub(crate) mod package;
pub(crate) mod release;
pub(crate) mod workflows;
