//! Reads the functions on the stacks of allocations from the program's debug information, and
//! infers the types of allocations from them.

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
        let dump = symbolicated(allocations)?;
        let names = dump.blocks.iter().map(|block| match block.kind.alloc {
            None => None,
            Some(trace) => match BlockType::of_trace(&dump, dump.trace(trace)) {
                BlockType::Known(name) => Some(name),
                _ => None,
            },
        });
        Ok(names.collect())
    })
}

/// Returns the functions on the stack of each allocation, innermost first, with inlined functions.
///
/// Other than [`Stack::functions`](crate::observe::Stack::functions), it states all functions that
/// the linker or the compiler merged: `one of a::f, b::g`. Each call reads the program's debug
/// information, so pass many allocations at once.
///
/// # Errors
///
/// If the log of the allocations cannot be read back, which would be a bug.
pub fn function_names(allocations: &[Allocation]) -> Result<Vec<Vec<String>>, read::ReadError> {
    as_own(|| {
        let dump = symbolicated(allocations)?;
        let name = |frame: &read::FrameId| match &dump.frames[frame.index()].symbol {
            Some(symbol) => symbol.function.to_string(),
            None => "???".to_owned(),
        };
        let names = |trace| dump.trace(trace).iter().map(name).collect();
        Ok(dump.blocks.iter().map(|block| block.kind.alloc.map_or_else(Vec::new, names)).collect())
    })
}

/// Returns a dump of these blocks alone, with functions.
fn symbolicated(allocations: &[Allocation]) -> Result<read::Dump, read::ReadError> {
    let mut text = Vec::new();
    write_log(allocations, &mut text).map_err(read::ReadError::Io)?;
    let mut dump = read::read_slice(&text)?;
    // One thread, because the memory of other threads would count as the program's.
    let mut options = Options::default();
    options.threads = Some(1);
    Symboliser::new(options).symbolicate(&mut dump);
    Ok(dump)
}
