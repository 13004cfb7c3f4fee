//! The types of what was allocated, as far as stacks tell them.

use memreport::__private::as_own;

use memreport_analysis::analysis::BlockType;
use memreport_analysis::read;
use memreport_analysis::symbols::{Options, Symboliser};

use crate::dump::write_log;
use crate::observe::Allocation;

/// The type of each of these allocations, where the functions that made it tell: a `[String]` grew in `push<String>`. It reads
/// the program's debug information, which takes time and memory: it is meant for many allocations at once.
///
/// # Errors
///
/// Those of reading what was written, which are ours.
pub fn type_names(allocations: &[Allocation]) -> Result<Vec<Option<String>>, read::ReadError> {
    as_own(|| {
        let mut text = Vec::new();
        write_log(allocations, &mut text).map_err(read::ReadError::Io)?;
        let mut dump = read::read_slice(&text)?;
        // On this thread alone: the memory of another one would count as the program's.
        let mut options = Options::default();
        options.threads = Some(1);
        Symboliser::new(options).symbolicate(&mut dump);
        let names = dump.blocks.iter().map(|block| match block.alloc {
            None => None,
            Some(trace) => match BlockType::of_trace(&dump, dump.trace(trace)) {
                BlockType::Known(name) => Some(name),
                _ => None,
            },
        });
        Ok(names.collect())
    })
}
