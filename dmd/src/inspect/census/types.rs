//! Infers the types of allocations from the functions on their stacks.

use memreport::__private::as_own;

use memreport_analysis::analysis::BlockType;
use memreport_analysis::read;
use memreport_analysis::symbols::{Options, Symboliser};

use crate::dump::write_log;
use crate::observe::Allocation;

/// Returns the type of each allocation, if the functions on its stack determine it.
///
/// For example, a block that `push<String>` allocates is a `[String]`. Each call reads the
/// program's debug information, which takes time and memory, so pass many allocations at once.
///
/// # Errors
///
/// If the log of the allocations cannot be read back, which would be a bug.
pub fn type_names(allocations: &[Allocation]) -> Result<Vec<Option<String>>, read::ReadError> {
    as_own(|| {
        let mut text = Vec::new();
        write_log(allocations, &mut text).map_err(read::ReadError::Io)?;
        let mut dump = read::read_slice(&text)?;
        // One thread, because the memory of other threads would count as the program's.
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
