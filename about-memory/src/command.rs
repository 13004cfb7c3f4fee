//! Runs the commands: one file for each, in folders as on the command line.
//!
//! Commands that start programs or ask running ones need sockets and signals of Unix. Elsewhere
//! each is an error that names what to do instead.

pub mod flags;
pub mod view;
pub mod inspect;
pub mod heap;
pub mod convert;
pub mod check;
pub mod annotate;
pub mod shell;
#[cfg(unix)]
pub mod launch;
#[cfg(unix)]
pub mod process;
#[cfg(unix)]
pub mod external;
#[cfg(not(unix))]
mod elsewhere;

#[cfg(not(unix))]
pub(crate) use elsewhere::NO_TRACKER;
#[cfg(not(unix))]
pub use elsewhere::{FleetCommand, LaunchCommand, ProcessCommand, SCOPE};
#[cfg(unix)]
pub use {external::FleetCommand, launch::LaunchCommand, process::ProcessCommand};

/// A paragraph for the help about what this system lacks.
#[cfg(unix)]
pub const SCOPE: Option<&str> = None;

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use clap::{Command, Subcommand};

    /// The names in the file of other systems, which is not compiled here.
    const ELSEWHERE: &str = include_str!("command/elsewhere.rs");

    #[test]
    fn commands_that_need_a_program_are_known_on_other_systems() {
        let all = LaunchCommand::augment_subcommands(Command::new(""));
        let all = ProcessCommand::augment_subcommands(all);
        let all = FleetCommand::augment_subcommands(all);
        let names = all
            .get_subcommands()
            .flat_map(|command| command.get_all_aliases().chain([command.get_name()]));
        let mut count = 0;
        for name in names {
            // An alias, or a variant that has the name.
            let variant = format!("{}{}(", name[..1].to_uppercase(), &name[1..]);
            let is_there =
                ELSEWHERE.contains(&format!("\"{name}\"")) || ELSEWHERE.contains(&variant);
            assert!(is_there, "{name}");
            count += 1;
        }
        assert!(count >= 14, "only {count} names");
    }
}
