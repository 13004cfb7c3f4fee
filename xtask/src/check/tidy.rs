//! `cargo xtask tidy [RULE…]`: house rules that no other tool checks.

mod outcome;
mod tokens;
mod comments;
mod files;
mod unsafe_files;
mod gates;
mod names;
mod openers;
mod phrases;
mod widths;
mod limits;
mod rooms;

use std::io::Write;

use self::files::Workspace;
use self::outcome::Outcome;
use crate::build;
use crate::failure::Failure;

/// A rule by its name.
struct Rule {
    name: &'static str,
    check: fn(&Workspace) -> Outcome,
}

const RULES: [Rule; 17] = [
    Rule { name: "unsafe", check: unsafe_files::check },
    Rule { name: "environment", check: gates::check_environment },
    Rule { name: "private-files", check: gates::check_files },
    Rule { name: "foreign-files", check: gates::check_foreign_files },
    Rule { name: "terminal-text", check: gates::check_terminal_text },
    Rule { name: "systems", check: gates::check_systems },
    Rule { name: "first-lines", check: names::check_first_lines },
    Rule { name: "vague-names", check: names::check_vague },
    Rule { name: "openers", check: openers::check },
    Rule { name: "phrases", check: phrases::check },
    Rule { name: "columns", check: widths::check_comments },
    Rule { name: "readme", check: widths::check_readme },
    Rule { name: "sizes", check: limits::sizes::check },
    Rule { name: "folders", check: limits::folders::check },
    Rule { name: "rooms", check: rooms::check_rooms },
    Rule { name: "inside-rooms", check: rooms::check_inside },
    Rule { name: "map", check: rooms::check_map },
];

/// Checks the named rules, or all. Returns `false` if one is violated.
pub(crate) fn run(wanted: &[&str], out: &mut dyn Write) -> Result<bool, Failure> {
    if let Some(unknown) = wanted.iter().find(|word| RULES.iter().all(|rule| rule.name != **word)) {
        let names = RULES.map(|rule| rule.name).join(", ");
        return Err(format!("no rule is called {unknown}; there are: {names}").into());
    }
    let workspace = Workspace::read(build::root())?;
    let mut all_hold = true;
    for rule in RULES.iter().filter(|rule| wanted.is_empty() || wanted.contains(&rule.name)) {
        let outcome = (rule.check)(&workspace);
        writeln!(out, "{}: {outcome}", rule.name)?;
        all_hold &= outcome.holds;
    }
    Ok(all_hold)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// Holds the workspace to one rule.
    fn holds(name: &str) {
        static WORKSPACE: LazyLock<Workspace> =
            LazyLock::new(|| Workspace::read(build::root()).expect("sources are text"));
        let rule = RULES.iter().find(|rule| rule.name == name).expect("the rule has a name");
        let outcome = (rule.check)(&WORKSPACE);
        assert!(outcome.holds, "{name}: {outcome}");
    }

    macro_rules! the_workspace_keeps {
        ($($test:ident $name:literal,)*) => {
            $(#[test] fn $test() { holds($name); })*

            #[test]
            fn every_rule_has_a_test() {
                assert_eq!(RULES.map(|rule| rule.name), [$($name),*]);
            }
        };
    }

    the_workspace_keeps! {
        unsafe_in_the_listed_files "unsafe",
        the_environment_behind_gates "environment",
        new_files_behind_gates "private-files",
        files_of_dumps_behind_gates "foreign-files",
        text_of_terminals_behind_gates "terminal-text",
        conditions_on_the_system_in_one_folder "systems",
        a_first_line_in_every_file "first-lines",
        vague_names_out "vague-names",
        doc_openers_plain "openers",
        banned_phrases_out "phrases",
        comments_within_100_columns "columns",
        the_readme_short "readme",
        files_short "sizes",
        folders_small "folders",
        rooms_free_of_cycles "rooms",
        files_of_a_room_free_of_cycles "inside-rooms",
        the_map_up_to_date "map",
    }

    #[test]
    fn an_unknown_rule_is_refused() {
        let error = run(&["colums"], &mut Vec::new()).expect_err("there is no such rule");
        assert!(error.to_string().starts_with("no rule is called colums; there are: unsafe, "));
    }
}
