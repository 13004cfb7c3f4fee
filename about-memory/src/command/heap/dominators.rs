//! `about-memory heap dominators DUMP`: shows the blocks that keep most of the heap alive, and
//! unreachable cycles.

use super::scan::Scan;
use super::scan_options;
use crate::command::flags::{by, candidates, percent};
use crate::context::Context;
use crate::error::Failure;
use crate::input::dump::{DumpArgs, DumpError};
use clap::Args;
use memreport_analysis::axis::Axis;
use memreport_analysis::retention;
use memreport_analysis::retention::{Retention, TreeOptions};
use std::path::PathBuf;
use std::process::ExitCode;

/// `about-memory heap dominators`
#[derive(Debug, Args)]
pub struct DominatorsArgs {
    /// A dump with DMD=--mode=scan, by memreport or Firefox; `-` is standard input; or the pid or
    /// the name of a running program, also of one without DMD
    #[arg(value_name = "DUMP|PID|NAME", add = candidates::programs_and_files())]
    input: PathBuf,

    /// Group the blocks by an axis, as a table of the bytes that each group retains
    #[arg(long, value_name = "AXIS", long_help = by::any_axis("Group the blocks by an axis, as a table of the bytes that each group retains"))]
    by: Option<Axis>,

    /// Show N children of a node, groups or cycles [default: 10, with --by 20]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Aggregate what retains less of the heap as `<other>`
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent, conflicts_with = "by")]
    min: f64,

    /// Show N levels
    #[arg(long, value_name = "N", default_value_t = 12, conflicts_with = "by")]
    depth: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Flags of symbolication.
    #[command(flatten)]
    dump: DumpArgs,
}

impl DominatorsArgs {
    /// Prints the dominator tree and the cycles, or groups.
    ///
    /// # Errors
    /// The dump cannot be read or is no scan, or the answer cannot be written.
    pub fn run(self, context: &mut Context<'_>) -> Result<ExitCode, Failure> {
        let mut reader = self.dump.reader();
        let dump = Scan::new(&self.input).read(&mut reader, &mut context.notes)?;
        reader.free_modules();
        let options = scan_options::explain_options(context, self.json);
        let damaged = |error| DumpError::Clamp(self.input.clone(), error);
        let retention = Retention::new(&dump, &options).map_err(damaged)?;
        if let Some(axis) = &self.by {
            let groups = retention.groups(axis, self.top.unwrap_or(20));
            retention.check_words().map_err(damaged)?;
            match self.json {
                true => retention::write_groups_json(&groups.0, &mut context.out.json()),
                false => retention::write_groups(&retention, &groups, &mut context.out),
            }?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut tree = TreeOptions::default();
        let top = self.top.unwrap_or(tree.top);
        (tree.top, tree.min_percent, tree.depth) = (top, self.min, self.depth);
        let tree = retention.tree(&tree);
        let mut cycles = retention.cycles();
        retention.check_words().map_err(damaged)?;
        let shown = if self.json { cycles.len() } else { top };
        let steps = cycles.iter().take(shown).flat_map(|cycle| &cycle.steps);
        let members = reader.members(&dump, &retention.pointing_types(steps));
        let steps = cycles.iter_mut().take(shown).flat_map(|cycle| &mut cycle.steps);
        retention.name_fields(steps, &members);
        match self.json {
            true => retention::write_tree_json(&retention, &tree, &cycles, &mut context.out.json()),
            false => retention::write_tree(&retention, &tree, &mut context.out)
                .and_then(|()| retention::write_cycles(&retention, &cycles, top, &mut context.out)),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}
