//! Registers the commands of a server: the program's own, and those of its crates.

use std::fmt;
use std::sync::Arc;

use super::protocol::{Command, Part, Request};

/// The answer of a command: named pieces of bytes, or one sentence with the reason for a failure.
pub type Answer = Result<Vec<Part>, String>;

/// A command that is registered at link time. Made by [`command!`](crate::command).
#[derive(Clone, Copy)]
pub struct StaticCommand {
    name: &'static str,
    description: &'static str,
    run: fn(&Request) -> Answer,
}

impl StaticCommand {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        name: &'static str,
        description: &'static str,
        run: fn(&Request) -> Answer,
    ) -> Self {
        StaticCommand { name, description, run }
    }
}

impl fmt::Debug for StaticCommand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("StaticCommand").field(&self.name).finish()
    }
}

inventory::collect!(StaticCommand);

/// Registers a command of the program's server at link time, from any crate.
///
/// ```
/// use memreport::serve::Part;
///
/// memreport::command!("version", "Returns the version of the program.", |_request| {
///     Ok(vec![Part { name: "version".into(), bytes: b"1.2".to_vec() }])
/// });
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! command {
    ($name:literal, $description:literal, $run:expr $(,)?) => {
        $crate::__private::submit! {
            $crate::__private::StaticCommand::new($name, $description, $run)
        }
    };
}

type Run = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// All commands of one server.
#[derive(Clone, Default)]
pub(super) struct Commands {
    own: Vec<(Command, Run)>,
}

impl Commands {
    pub(super) fn add(
        &mut self,
        name: String,
        description: String,
        run: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) {
        self.own.push((Command { name, description }, Arc::new(run)));
    }

    /// Returns the command with this name. The program's own commands have precedence.
    pub(super) fn find(&self, name: &str) -> Option<Run> {
        let own = self.own.iter().find(|(command, _)| command.name == name);
        own.map(|(_, run)| Arc::clone(run)).or_else(|| {
            let linked = inventory::iter::<StaticCommand>().find(|command| command.name == name)?;
            let run: Run = Arc::new(linked.run);
            Some(run)
        })
    }

    /// Lists all commands by name.
    pub(super) fn list(&self) -> Vec<Command> {
        let linked = inventory::iter::<StaticCommand>().map(|command| Command {
            name: command.name.to_owned(),
            description: command.description.to_owned(),
        });
        let mut all: Vec<_> = BUILT_IN
            .iter()
            .map(|(name, description)| Command {
                name: (*name).to_owned(),
                description: (*description).to_owned(),
            })
            .chain(self.own.iter().map(|(command, _)| command.clone()))
            .chain(linked)
            .collect();
        all.sort_by(|left, right| left.name.cmp(&right.name));
        all.dedup_by(|left, right| left.name == right.name);
        all
    }
}

impl fmt::Debug for Commands {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.own.iter().map(|(command, _)| &command.name)).finish()
    }
}

/// The commands of every server.
const BUILT_IN: [(&str, &str); 5] = [
    ("history", "Returns the snapshots that the program keeps of its past, oldest first."),
    ("minimize", "Releases caches and unused heap."),
    ("ping", "Does nothing."),
    ("report", "Returns a memory report; with dump=yes, also DMD's dump of the same moment."),
    ("status", "Returns the name, commands, tracking state and sizes."),
];
