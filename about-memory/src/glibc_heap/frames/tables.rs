//! The unwind tables of modules: `.eh_frame`, found by `.eh_frame_hdr` (Linux Standard Base 5.0,
//! 10.6).

use std::collections::HashMap;
use std::fs::File;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult, LittleEndian,
    Location, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value, X86_64,
};
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment};

use super::{Caller, Mapping};
use crate::glibc_heap::image::PAGE;
use crate::glibc_heap::threads::{KEPT, Registers, STACK_POINTER, Saved};

/// The most bytes of a section of tables: more than any program has.
const MAX_TABLES: u64 = 256 << 20;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The modules of a process, whose files are read when they are needed.
pub(super) struct Modules<'m> {
    mappings: &'m [Mapping],
    open: &'m dyn Fn(&Mapping) -> Option<File>,
    /// By path; `None` if the file cannot be read.
    known: HashMap<&'m str, Option<Module>>,
}

/// A module's place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The difference between addresses in memory and in the file.
    pub(super) bias: u64,
    /// The address behind its last page.
    pub(super) end: u64,
}

/// A module with its tables.
struct Module {
    extent: Extent,
    frames: Section,
    index: Section,
}

/// A section of a file.
#[derive(Default)]
struct Section {
    address: u64,
    bytes: Vec<u8>,
}

/// The registers and memory of a frame, to which the rules of a table are applied.
struct State<'s> {
    registers: &'s Registers,
    word: &'s dyn Fn(u64) -> Option<u64>,
    high: u64,
}

impl<'m> Modules<'m> {
    pub(super) fn new(mappings: &'m [Mapping], open: &'m dyn Fn(&Mapping) -> Option<File>) -> Self {
        Self { mappings, open, known: HashMap::new() }
    }

    /// Returns the module of the code before an address, and the address in its file.
    pub(super) fn place(&mut self, code: u64) -> Option<(String, u64)> {
        let mapping = self.mapping(code.wrapping_sub(1))?;
        let bias = self.module(mapping)?.extent.bias;
        Some((mapping.path.clone(), code.wrapping_sub(bias)))
    }

    /// Returns where a module is in memory.
    pub(super) fn extent(&mut self, path: &str) -> Option<Extent> {
        let mapping = self.mappings.iter().find(|mapping| mapping.path == path)?;
        Some(self.module(mapping)?.extent)
    }

    /// Returns whether a module has code before an address.
    pub(super) fn has_code(&self, code: u64) -> bool {
        self.mapping(code.wrapping_sub(1)).is_some()
    }

    /// Returns the caller of code, by the tables of its module.
    pub(super) fn caller(
        &mut self,
        code: u64,
        registers: &Registers,
        word: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<Caller> {
        let mapping = self.mapping(code)?;
        self.module(mapping)?.caller(code, registers, word)
    }

    fn mapping(&self, address: u64) -> Option<&'m Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.range.start <= address);
        let mapping = &self.mappings[after.checked_sub(1)?];
        let is_code = mapping.path.starts_with('/') && !mapping.is_writable;
        (is_code && address < mapping.range.end).then_some(mapping)
    }

    fn module(&mut self, mapping: &'m Mapping) -> Option<&Module> {
        let Self { mappings, open, known } = self;
        let read = || {
            let first = mappings.iter().find(|first| first.path == mapping.path)?;
            Module::read(open(mapping)?, first.range.start)
        };
        known.entry(&mapping.path).or_insert_with(read).as_ref()
    }
}

impl Module {
    /// Reads the tables of a file whose first bytes are mapped at `start`.
    fn read(file: File, start: u64) -> Option<Self> {
        let cache = ReadCache::new(file);
        let parsed = object::File::parse(&cache).ok()?;
        let first = parsed.segments().map(|segment| segment.address()).min()?;
        let section = |name: &str| {
            let section = parsed.section_by_name(name)?;
            let bytes = (section.size() < MAX_TABLES).then(|| section.data().ok()).flatten()?;
            Some(Section { address: section.address(), bytes: bytes.to_vec() })
        };
        let ends =
            parsed.segments().map(|segment| segment.address().saturating_add(segment.size()));
        let bias = start.wrapping_sub(first & !(PAGE - 1));
        let end = bias.wrapping_add(ends.max()?.checked_next_multiple_of(PAGE)?);
        Some(Self {
            extent: Extent { bias, end },
            frames: section(".eh_frame").unwrap_or_default(),
            index: section(".eh_frame_hdr").unwrap_or_default(),
        })
    }

    fn caller(
        &self,
        code: u64,
        registers: &Registers,
        word: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<Caller> {
        let bases = BaseAddresses::default()
            .set_eh_frame(self.frames.address)
            .set_eh_frame_hdr(self.index.address);
        let frames = EhFrame::new(&self.frames.bytes, LittleEndian);
        let address = code.wrapping_sub(self.extent.bias);
        let find = EhFrame::cie_from_offset;
        let index = EhFrameHdr::new(&self.index.bytes, LittleEndian).parse(&bases, 8).ok();
        let entry = match index.as_ref().and_then(gimli::ParsedEhFrameHdr::table) {
            Some(table) => table.fde_for_address(&frames, &bases, address, find).ok()?,
            None => frames.fde_for_address(&bases, address, find).ok()?,
        };
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&frames, &bases, &mut context, address).ok()?;
        let encoding = entry.cie().encoding();
        let mut state = State { registers, word, high: 0 };
        let evaluate = |state: &State<'_>, expression: &UnwindExpression<usize>, first| {
            state.evaluate(expression.get(&frames).ok()?, encoding, first)
        };
        state.high = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                registers.value(register.0)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => evaluate(&state, expression, None)?,
        };
        let apply = |number: u16, rule: &RegisterRule<usize>| match rule {
            RegisterRule::Undefined => None,
            RegisterRule::SameValue => registers.get(number),
            RegisterRule::Offset(offset) => state.saved(state.high.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => {
                Some(Saved { value: state.high.wrapping_add_signed(*offset), place: None })
            }
            RegisterRule::Register(other) => registers.get(other.0),
            RegisterRule::Expression(expression) => {
                state.saved(evaluate(&state, expression, Some(state.high))?)
            }
            RegisterRule::ValExpression(expression) => {
                Some(Saved { value: evaluate(&state, expression, Some(state.high))?, place: None })
            }
            RegisterRule::Constant(value) => Some(Saved { value: *value, place: None }),
            _ => None,
        };
        let mut callers = Registers::default();
        for number in 0..16 {
            let saved = match row.register(gimli::Register(number)) {
                Some(rule) => apply(number, &rule),
                // The tables do not mention what a function leaves as it was.
                None => registers.get(number).filter(|_| KEPT.contains(&number)),
            };
            if let Some(saved) = saved {
                callers.set(number, saved);
            }
        }
        if callers.get(STACK_POINTER).is_none() {
            callers.set(STACK_POINTER, Saved { value: state.high, place: None });
        }
        let code = match row.register(X86_64::RA) {
            // The start of a thread.
            None | Some(RegisterRule::Undefined) => 0,
            Some(rule) => apply(X86_64::RA.0, &rule)?.value,
        };
        let is_interrupted = entry.cie().is_signal_trampoline();
        Some(Caller { code, high: state.high, registers: callers, is_interrupted })
    }
}

impl State<'_> {
    fn saved(&self, place: u64) -> Option<Saved> {
        Some(Saved { value: (self.word)(place)?, place: Some(place) })
    }

    /// Returns the value of an expression that begins with this value on its stack.
    fn evaluate(
        &self,
        expression: gimli::Expression<Slice<'_>>,
        encoding: gimli::Encoding,
        first: Option<u64>,
    ) -> Option<u64> {
        let mut evaluation = expression.evaluation(encoding);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.registers.value(register.0)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic((self.word)(address)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().first()?.location {
            Location::Address { address } => Some(address),
            Location::Value { value } => value.to_u64(u64::MAX).ok(),
            _ => None,
        }
    }
}
