//! Holds the options that `heap dominators` and `heap why-alive` share.

use crate::context::Context;
use crate::input::folder;
use memreport_analysis::analysis::ExplainOptions;

/// Returns options that name blocks in lines as wide as the terminal, if there is one.
pub(super) fn explain_options(context: &Context<'_>, is_json: bool) -> ExplainOptions {
    let mut options = ExplainOptions::default();
    options.root = folder::working_directory();
    if let Some(columns) = context.columns().filter(|_| !is_json) {
        options.width = columns;
    }
    options
}
