//! Finds the module of an address.

use serde_json::json;

use crate::mem::sys::Module;

/// The program's modules by address.
pub(crate) struct ModuleMap<'d> {
    /// Sorted by address.
    segments: Vec<Segment<'d>>,
}

/// An address range of a module. `high` is one past its last address.
#[derive(Clone, Copy)]
struct Segment<'d> {
    low: usize,
    high: usize,
    module: &'d Module,
}

impl<'d> ModuleMap<'d> {
    pub(crate) fn new(modules: &'d [Module]) -> Self {
        let of = |module: &'d Module| {
            module.segments.iter().map(move |&(low, high)| Segment { low, high, module })
        };
        let mut segments: Vec<_> = modules.iter().flat_map(of).collect();
        segments.sort_unstable_by_key(|segment| segment.low);
        ModuleMap { segments }
    }

    /// Returns the module that contains an address, and the address in its file.
    pub(super) fn of(&self, address: usize) -> Option<(&'d Module, usize)> {
        let after = self.segments.partition_point(|segment| segment.low <= address);
        let Segment { high, module, .. } = *self.segments.get(after.checked_sub(1)?)?;
        (address < high).then(|| (module, address - module.bias))
    }

    /// Returns the JSON of an address; `None` if it is in no module.
    pub(super) fn fields(&self, address: usize) -> Option<serde_json::Value> {
        let (module, offset) = self.of(address)?;
        Some(json!({ "module": module.path, "offset": format!("{offset:x}") }))
    }

    /// Describes an address as Mozilla's stack walker does for frames without a symbol.
    pub(crate) fn describe(&self, address: usize) -> String {
        match self.of(address) {
            Some((module, offset)) => format!("???[{} +0x{offset:x}]", module.path),
            None => format!("???[0x{address:x}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_address_is_placed_in_its_module() {
        let module = |path: &str, bias, segments: &[(usize, usize)]| Module {
            is_program: false,
            path: path.to_owned(),
            bias,
            segments: segments.to_vec(),
            data: Vec::new(),
            build_id: None,
        };
        let modules = [
            module("/bin/a", 0x5000, &[(0x5000, 0x6000), (0x7000, 0x8000)]),
            module("b.so", 0x9000, &[(0x9100, 0x9200)]),
        ];
        let map = ModuleMap::new(&modules);
        let table = [
            (0x5010, "???[/bin/a +0x10]"),
            (0x7fff, "???[/bin/a +0x2fff]"),
            (0x6000, "???[0x6000]"),
            (0x9100, "???[b.so +0x100]"),
            (0x10, "???[0x10]"),
        ];
        for (address, text) in table {
            assert_eq!(map.describe(address), text);
        }
    }
}
