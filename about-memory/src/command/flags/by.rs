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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_axes_that_are_taken() {
        let names = |help: String| -> Vec<String> {
            let lines = help.lines().skip(3);
            let names = lines.map(|line| line.split_once(": ").unwrap().0.to_owned());
            names.collect()
        };
        assert!(tree_axes("Groups blocks.").starts_with("Groups blocks.\n\nAxes:\n- "));
        let word = |name: &str| match name {
            "stack" | "reporter" => format!("- {name}[:N]"),
            _ => format!("- {name}"),
        };
        let mut of_trees: Vec<String> = browse::AXES.iter().map(|name| word(name)).collect();
        let mut shown = names(tree_axes("Groups blocks."));
        of_trees.sort_unstable();
        shown.sort_unstable();
        assert_eq!(shown, of_trees);
        let all: Vec<String> = Axis::words().iter().map(|axis| word(axis.name)).collect();
        assert_eq!(names(any_axis("Groups blocks.")), all);
    }
}
