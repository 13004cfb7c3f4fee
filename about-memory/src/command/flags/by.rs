//! Defines the help of `--by`, whose words are the same in every command.

use memreport_analysis::axis::Axis;
use memreport_analysis::heap::browse;

/// Returns the help of a `--by` that takes every axis.
pub(crate) fn any_axis(purpose: &str) -> String {
    help(purpose, |_| true)
}

/// Returns the help of a `--by` that takes the axes of a tree.
pub(crate) fn tree_axes(purpose: &str) -> String {
    help(purpose, |name| browse::AXES.contains(&name))
}

/// Parses an axis of a tree.
pub(crate) fn tree_axis(text: &str) -> Result<Axis, memreport_analysis::axis::AxisError> {
    text.parse::<Axis>()?.one_of(&browse::AXES)
}

fn help(purpose: &str, is_supported: impl Fn(&str) -> bool) -> String {
    let words = Axis::words().iter().filter(|word| is_supported(word.name));
    words.fold(format!("{purpose}\n\nAxes:"), |help, word| {
        let cut = if matches!(word.name, "stack" | "reporter") { "[:N]" } else { "" };
        format!("{help}\n- {}{cut}: {}", word.name, word.meaning)
    })
}
