//! Finds the variables of functions that were on a stack, and their places, from debug information.
//!
//! Locations are expressions that a stack machine evaluates (DWARF 5, 2.5 and 2.6). Those that need
//! memory, such as of an argument that the caller's stack has, are left out.

use addr2line::gimli::{
    self, AttributeValue, EvaluationResult, Expression, Location, UnitOffset, UnitRef,
};

use super::{Entry, Place};
use crate::read::StackFrame;
use crate::symbols::module::dwarf::Slice;
use crate::symbols::types::{LocalPart, LocalPlace};

/// A variable whose type is a place still.
#[derive(Debug)]
pub(super) struct RawLocal {
    /// The number of the frame.
    pub(super) frame: usize,
    /// The number of inlined calls around the variable within the frame's function.
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) of: Place,
    pub(super) parts: Vec<LocalPart>,
}

/// A frame, by its number, with the address of its current code.
struct Current<'f> {
    number: usize,
    frame: &'f StackFrame,
    code: u64,
}

/// Adds the variables of a unit that the frames have. Damaged entries end it early.
pub(super) fn read_unit(
    unit: UnitRef<'_, Slice<'_>>,
    frames: &[(usize, &StackFrame)],
    found: &mut Vec<RawLocal>,
) -> Option<()> {
    let code = |frame: &StackFrame| frame.offset.saturating_sub(1);
    let mut current = Vec::new();
    let mut ranges = unit.unit_ranges().ok()?;
    while let Some(range) = ranges.next().ok()? {
        let inside = frames.iter().filter(|(_, frame)| has(&range, code(frame)));
        current.extend(inside.map(|&(number, frame)| Current { number, frame, code: code(frame) }));
    }
    if current.is_empty() {
        return Some(());
    }
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().ok()? {
        if entry.tag() != gimli::DW_TAG_subprogram {
            continue;
        }
        for current in &current {
            if contains(unit, entry, current.code) {
                let base = entry.attr_value(gimli::DW_AT_frame_base);
                Function { unit, current, base }.read(entry.offset(), found)?;
            }
        }
    }
    Some(())
}

fn has(range: &gimli::Range, address: u64) -> bool {
    (range.begin..range.end).contains(&address)
}

/// Returns whether the code of an entry has an address.
fn contains<'d>(
    unit: UnitRef<'_, Slice<'d>>,
    entry: &gimli::DebuggingInformationEntry<Slice<'d>>,
    address: u64,
) -> bool {
    let Ok(mut ranges) = unit.die_ranges(entry) else { return false };
    while let Ok(Some(range)) = ranges.next() {
        if has(&range, address) {
            return true;
        }
    }
    false
}

/// A function with the frame that is in it.
struct Function<'f, 'd> {
    unit: UnitRef<'f, Slice<'d>>,
    current: &'f Current<'f>,
    base: Option<AttributeValue<Slice<'d>>>,
}

impl<'d> Function<'_, 'd> {
    /// Adds the variables of all scopes that the current code is in.
    fn read(&self, start: UnitOffset, found: &mut Vec<RawLocal>) -> Option<()> {
        let unit = self.unit;
        let mut entries = unit.entries_at_offset(start).ok()?;
        // The depths of the inlined calls around the entry.
        let mut calls: Vec<isize> = Vec::new();
        let mut first = None;
        let mut skipped = None;
        while let Some(entry) = entries.next_dfs().ok()? {
            let depth = entry.depth();
            if depth <= *first.get_or_insert(depth) {
                // The function itself, or what comes behind it.
                if entry.offset() == start {
                    continue;
                }
                break;
            }
            if skipped.is_some_and(|skipped| depth > skipped) {
                continue;
            }
            skipped = None;
            while calls.last().is_some_and(|call| *call >= depth) {
                calls.pop();
            }
            match entry.tag() {
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine
                    if contains(unit, entry, self.current.code) =>
                {
                    if entry.tag() == gimli::DW_TAG_inlined_subroutine {
                        calls.push(depth);
                    }
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    found.extend(self.variable(&Entry { unit, entry }, calls.len()));
                }
                _ => skipped = Some(depth),
            }
        }
        Some(())
    }

    /// Returns a variable that has a place now.
    fn variable(&self, entry: &Entry<'_, 'd>, depth: usize) -> Option<RawLocal> {
        let parts = self.parts(entry.entry.attr_value(gimli::DW_AT_location)?)?;
        if parts.is_empty() {
            return None;
        }
        let number = self.current.number;
        let local = |name: String, of| RawLocal { frame: number, depth, name, of, parts };
        // A variable of an inlined call has its name and its type elsewhere.
        match entry.entry.attr_value(gimli::DW_AT_abstract_origin) {
            Some(AttributeValue::UnitRef(origin)) => {
                let origin = self.unit.entry(origin).ok()?;
                let origin = Entry { unit: self.unit, entry: &origin };
                Some(local(origin.name()?, origin.reference(gimli::DW_AT_type)?))
            }
            Some(_) => None,
            None => Some(local(entry.name()?, entry.reference(gimli::DW_AT_type)?)),
        }
    }

    fn parts(&self, location: AttributeValue<Slice<'d>>) -> Option<Vec<LocalPart>> {
        let expression = match location {
            AttributeValue::Exprloc(expression) => expression,
            list => {
                let mut list = self.unit.attr_locations(list).ok()??;
                loop {
                    let entry = list.next().ok()??;
                    if has(&entry.range, self.current.code) {
                        break entry.data;
                    }
                }
            }
        };
        let mut parts = Vec::new();
        let mut offset = 0;
        for piece in self.evaluate(expression, true)? {
            let size = piece.size_in_bits.map(|bits| bits / 8);
            let place = match piece.location {
                Location::Address { address } => Some(LocalPlace::Memory(address)),
                Location::Register { register } => {
                    let saved = self.current.frame.register(register.0)?.place;
                    Some(saved.map_or(LocalPlace::Register(register.0), LocalPlace::Memory))
                }
                _ => None,
            };
            parts.extend(place.map(|place| LocalPart { place, size, offset }));
            offset += size.unwrap_or(0);
        }
        Some(parts)
    }

    fn evaluate(
        &self,
        expression: Expression<Slice<'d>>,
        may_need_base: bool,
    ) -> Option<Vec<gimli::Piece<Slice<'d>>>> {
        let encoding = self.unit.encoding();
        let frame = self.current.frame;
        let register = |number: u16| Some(frame.register(number)?.value);
        let mut evaluation = expression.evaluation(encoding);
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => return Some(evaluation.result()),
                EvaluationResult::RequiresRegister { register: number, .. } => evaluation
                    .resume_with_register(gimli::Value::Generic(register(number.0)?))
                    .ok()?,
                EvaluationResult::RequiresCallFrameCfa => {
                    evaluation.resume_with_call_frame_cfa(frame.high).ok()?
                }
                EvaluationResult::RequiresFrameBase if may_need_base => {
                    evaluation.resume_with_frame_base(self.base()?).ok()?
                }
                _ => return None,
            };
        }
    }

    /// Returns the address that the places of variables are relative to.
    fn base(&self) -> Option<u64> {
        let Some(AttributeValue::Exprloc(expression)) = self.base else { return None };
        match self.evaluate(expression, false)?.first()?.location {
            Location::Register { register } => Some(self.current.frame.register(register.0)?.value),
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}
