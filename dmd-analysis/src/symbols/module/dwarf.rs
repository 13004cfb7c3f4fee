//! Looks up an address in debug information: inlined functions, the function around them, files and
//! lines.

mod own_name;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use addr2line::gimli::{
    self, DwarfPackage, DwarfPackageSections, DwarfSections, EndianSlice, RunTimeEndian,
};
use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use rustc_hash::FxHashMap;
use typed_arena::Arena;

use super::elf::{Elf, Function, function_at};
use super::file;
use super::locate::Files;
use super::merged::Merged;
use super::names::{NameCache, Names};
use crate::read::Symbol;
use own_name::OwnNames;

/// Bytes of debug information.
pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The parsed files of a module, which threads share.
pub(crate) struct Sources<'a> {
    endian: RunTimeEndian,
    first_address: u64,
    has_lines: bool,
    functions: Vec<Function<'a>>,
    sections: DwarfSections<Cow<'a, [u8]>>,
    package: Option<DwarfPackageSections<Cow<'a, [u8]>>>,
    directory: Option<&'a Path>,
}

impl<'a> Sources<'a> {
    pub(crate) fn open(files: &'a Files) -> Result<Self, String> {
        let main = Elf::parse(&files.main)?;
        let separate = files.debug.as_deref().map(Elf::parse).transpose()?;
        let debug = separate.as_ref().unwrap_or(&main);
        // A stripped executable only keeps exported functions; its debug file has all.
        let functions =
            separate.as_ref().map(Elf::functions).filter(|functions| !functions.is_empty());
        let package = files.package.as_deref().map(Elf::parse).transpose()?;
        Ok(Self {
            endian: debug.endian(),
            first_address: main.first_address(),
            has_lines: debug.has_debug_info(),
            functions: functions.unwrap_or_else(|| main.functions()),
            sections: debug.dwarf_sections(),
            package: package.and_then(|package| package.package_sections()),
            directory: files.path.parent(),
        })
    }

    pub(crate) fn first_address(&self) -> u64 {
        self.first_address
    }
}

/// The open files of split debug information.
pub(crate) type Opened = Arena<Vec<u8>>;

/// A lookup of addresses in a module. Each thread has its own.
pub(crate) struct Lookup<'a> {
    sources: &'a Sources<'a>,
    names: &'a NameCache,
    context: Option<Context<Slice<'a>>>,
    own_names: OwnNames<'a>,
    split: Split<'a>,
    files: FxHashMap<(usize, usize), Arc<str>>,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(sources: &'a Sources<'a>, names: &'a NameCache, opened: &'a Opened) -> Self {
        let slice = |section: &'a Cow<'a, [u8]>| EndianSlice::new(section, sources.endian);
        let dwarf = sources.sections.borrow(slice);
        let empty = EndianSlice::new(&[], sources.endian);
        let package =
            sources.package.as_ref().and_then(|package| package.borrow(slice, empty).ok());
        Self {
            sources,
            names,
            own_names: OwnNames::new(sources.sections.borrow(slice)),
            context: if sources.has_lines { Context::from_dwarf(dwarf).ok() } else { None },
            split: Split { package, opened, endian: sources.endian, directory: sources.directory },
            files: FxHashMap::default(),
        }
    }

    /// Returns the functions at an address of the module, innermost first; none if there are no
    /// symbols.
    pub(crate) fn symbols(&mut self, address: u64) -> Vec<Symbol> {
        let function = function_at(&self.sources.functions, address);
        let mut symbols = self.frames(address).unwrap_or_default();
        let Some(function) = function else {
            symbols.retain(|symbol| !symbol.function.is_empty());
            return symbols;
        };
        let names = self.names.names(function.name.as_bytes(), || None);
        match symbols.last_mut() {
            None => symbols.push(from_table(names, function)),
            Some(outermost) => {
                // Unlike line tables, the symbol table has paths, and shows other functions at this
                // address.
                outermost.folded = !function.others.is_empty();
                let mangled = names.name.is_none();
                if outermost.function.is_empty() || (mangled && !outermost.function.contains("::"))
                {
                    outermost.function = names.function;
                }
            }
        }
        if !function.others.is_empty() {
            let all = std::iter::once(function.name).chain(function.others.iter().copied());
            if let Some(merged) = Merged::of(all) {
                merged.correct(&mut symbols);
            }
        }
        symbols
    }

    fn frames(&mut self, address: u64) -> Option<Vec<Symbol>> {
        let Self { context, names, own_names, split, files, .. } = self;
        let context = context.as_ref()?;
        let mut frames = split.resolve(context.find_frames(address)).ok()?;
        let mut symbols: Vec<Symbol> = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let names = frame.function.map(|function| {
                let own_name = || {
                    let unit = split.resolve(context.find_dwarf_and_unit(address))?;
                    own_names.find(unit, frame.dw_die_offset?)
                };
                names.names(function.name.slice(), own_name)
            });
            let names = names.unwrap_or_else(|| Names { function: "".into(), name: None });
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file);
            symbols.push(Symbol {
                function: names.function,
                name: names.name,
                file: file.map(|file| {
                    Arc::clone(files.entry(place(file)).or_insert_with(|| file.into()))
                }),
                line: location.and_then(|location| location.line).filter(|&line| line > 0),
                inlined: true,
                folded: false,
                module: None,
            });
        }
        if let Some(outermost) = symbols.last_mut() {
            outermost.inlined = false;
        }
        Some(symbols)
    }
}

/// Returns the identity of a string of the debug information: its position in memory.
fn place(text: &str) -> (usize, usize) {
    (text.as_ptr().addr(), text.len())
}

fn from_table(names: Names, function: &Function<'_>) -> Symbol {
    let Names { function: path, name } = names;
    Symbol {
        function: path,
        name,
        file: None,
        line: None,
        inlined: false,
        folded: !function.others.is_empty(),
        module: None,
    }
}

/// Split debug information in separate files, `.dwp` or `.dwo`.
struct Split<'a> {
    package: Option<DwarfPackage<Slice<'a>>>,
    opened: &'a Opened,
    endian: RunTimeEndian,
    directory: Option<&'a Path>,
}

impl<'a> Split<'a> {
    /// Returns the result of a lookup, after loading the files that it needs.
    fn resolve<C: LookupContinuation<Buf = Slice<'a>>>(
        &self,
        mut result: LookupResult<C>,
    ) -> C::Output {
        loop {
            match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    result = continuation.resume(self.load(&load));
                }
            }
        }
    }

    fn load(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<Arc<gimli::Dwarf<Slice<'a>>>> {
        let packaged = self
            .package
            .as_ref()
            .and_then(|package| package.find_cu(load.dwo_id, &load.parent).ok()?);
        packaged.or_else(|| self.load_file(load)).map(Arc::new)
    }

    fn load_file(&self, load: &SplitDwarfLoad<Slice<'a>>) -> Option<gimli::Dwarf<Slice<'a>>> {
        let name = load.path.as_ref()?.to_string_lossy();
        let name = Path::new(&*name);
        let built_in =
            load.comp_dir.as_ref().map(|directory| directory.to_string_lossy().into_owned());
        let places =
            [built_in.map(|directory| Path::new(&directory).join(name)), self.beside(name)];
        let bytes = places.into_iter().flatten().find_map(|place| file::read(&place).ok())?;
        let elf = Elf::parse(self.opened.alloc(bytes)).ok()?;
        let sections = elf.split_sections();
        let keep = |section: Cow<'a, [u8]>| match section {
            Cow::Borrowed(bytes) => bytes,
            Cow::Owned(bytes) => &*self.opened.alloc(bytes),
        };
        let mut dwarf =
            sections.borrow(|section| EndianSlice::new(keep(section.clone()), self.endian));
        let unit = dwarf.units().next().ok()??;
        if dwarf.unit(unit).ok()?.dwo_id != Some(load.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&load.parent);
        Some(dwarf)
    }

    /// Returns the path beside the module, for a build directory that no longer exists.
    fn beside(&self, name: &Path) -> Option<std::path::PathBuf> {
        Some(self.directory?.join(name.file_name()?))
    }
}
