//! The walk itself, frame by frame outwards, until it comes to frames that are known from the last stack.

use std::cell::Cell;
use std::hint::select_unpredictable;

use super::last::{Frame, LastStack, Registers, retrace};
use super::memory::Memory;
use super::rule::{Base, Packed, Places, Plain, Rule, WORD};

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At the thread's outermost frame.
    Outermost,
    /// Before it: nothing is known of the code, or the stack is broken, or deeper than what is kept.
    Early,
    /// At a rule that only the reference unwinder can follow.
    Odd,
}

/// An address in the code whose rule is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Inside the instruction that has not returned yet, or at the one to be executed next.
    pub(super) code: usize,
    /// Whether it is where the instruction pointer stands: true of the innermost frame, and of one that a signal interrupted.
    /// Of others, that is one past what they called.
    pub(super) is_exact: bool,
}

/// A rule that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    pub(super) rule: Packed,
    /// Whether it is good for as long as the process.
    pub(super) is_fixed: bool,
}

/// Where the walk has come to.
#[derive(Clone, Copy)]
struct Position {
    registers: Registers,
    is_interrupted: bool,
}

/// Walks from here outwards by these rules, and leaves the frames in the thread's last stack.
#[inline(always)]
pub(super) fn walk(
    here: Registers,
    mut memory: Memory,
    last: &LastStack,
    look_up: impl Fn(Place) -> Option<Looked>,
) -> End {
    let lasting = last.lasting();
    let mut position = Position { registers: here, is_interrupted: false };
    let (mut same, mut fresh) = (0, 0);
    let end = loop {
        if !position.is_interrupted
            && let Some(met) = last.find(position.registers)
        {
            let certain = retrace(lasting, met);
            let Some(frame) = lasting.get(certain).map(Cell::get) else { break End::Early };
            if certain == 0 && !frame.is_opaque() {
                same = met + 1;
                break End::Outermost;
            }
            if !last.keep_again(&mut fresh, lasting.get(certain + 1..=met).unwrap_or(&[])) {
                break End::Early;
            }
            position.registers = frame.registers;
            position.is_interrupted = frame.is_interrupted();
        }
        let Position { registers, is_interrupted } = position;
        let code = registers.instruction.wrapping_sub(usize::from(!is_interrupted));
        let looked = look_up(Place { code, is_exact: is_interrupted });
        if !is_interrupted
            && let Some(Looked { rule, is_fixed: true }) = looked
            && let Some(rule) = rule.plain()
            && let cfa = value(registers, rule.base).wrapping_add(rule.cfa)
            && memory.has(registers.stack_pointer, cfa)
            && let Some((saved, caller)) = caller(registers, rule, cfa, memory)
            && caller.instruction != 0
        {
            if !last.keep(&mut fresh, Frame { registers, saved }) {
                break End::Early;
            }
            position.registers = caller;
            continue;
        }
        let (frame, next) = go_on_oddly(position, memory, looked);
        if !last.keep(&mut fresh, frame) {
            break End::Early;
        }
        match next {
            Ok(next) => (position, memory) = next,
            Err(end) => break end,
        }
    };
    let is_whole = last.replace(same, fresh);
    let end = if is_whole { end } else { End::Early };
    let lasts = end == End::Outermost && !memory.has_left();
    last.lasting.set(if lasts { last.length.get() } else { 0 });
    end
}

/// Where the walk is next, and what it may read there.
type Next = Result<(Position, Memory), End>;

/// Where the caller's frame pointer was read, and the caller's registers, by a plain rule that comes to this CFA.
#[inline(always)]
fn caller(
    registers: Registers,
    rule: Plain,
    cfa: usize,
    memory: Memory,
) -> Option<(usize, Registers)> {
    let instruction = memory.word(cfa.wrapping_sub(WORD))?;
    // A jump would be guessed wrongly too often: where nothing was saved, the return address is read once more.
    let is_saved = rule.saved != 0;
    let saved = cfa.wrapping_sub(select_unpredictable(is_saved, rule.saved, WORD));
    let word = memory.word(saved)?;
    let frame_pointer = select_unpredictable(is_saved, word, registers.frame_pointer);
    let saved = select_unpredictable(is_saved, saved, Frame::UNCHANGED);
    Some((saved, Registers { stack_pointer: cfa, instruction, frame_pointer }))
}

/// All that is rare.
#[cold]
#[inline(never)]
fn go_on_oddly(position: Position, memory: Memory, looked: Option<Looked>) -> (Frame, Next) {
    let Position { registers, is_interrupted } = position;
    let saved = if is_interrupted { Frame::INTERRUPTED } else { Frame::OPAQUE };
    let opaque = Frame { registers, saved };
    let rule = looked.map(|looked| (looked.rule.rule(), looked.is_fixed));
    let next = match rule {
        Some((Rule::Plain(rule), _)) => {
            let cfa = value(registers, rule.base).wrapping_add(rule.cfa);
            memory.leads(registers.stack_pointer, cfa).and_then(|memory| {
                let (_, registers) = caller(registers, rule, cfa, memory)?;
                Some((Position { registers, is_interrupted: false }, memory))
            })
        }
        Some((Rule::Indirect { base, cfa, places, is_signal }, _)) => {
            let base = value(registers, base);
            indirect(registers, memory, |distance| base.wrapping_add_signed(distance), (cfa, places))
                .map(|(registers, memory)| (Position { registers, is_interrupted: is_signal }, memory))
        }
        Some((Rule::Outermost, is_fixed)) => {
            let frame = Frame { registers, saved: Frame::UNCHANGED };
            return (if is_fixed && !is_interrupted { frame } else { opaque }, Err(End::Outermost));
        }
        Some((Rule::Other, _)) => return (opaque, Err(End::Odd)),
        None => None,
    };
    match next {
        // Nobody called it.
        Some((Position { registers: Registers { instruction: 0, .. }, .. }, _)) => {
            (opaque, Err(End::Outermost))
        }
        Some(next) => (opaque, Ok(next)),
        None => (opaque, Err(End::Early)),
    }
}

/// The caller by an indirect rule.
fn indirect(
    registers: Registers,
    memory: Memory,
    address: impl Fn(isize) -> usize,
    (cfa, places): (isize, Places),
) -> Option<(Registers, Memory)> {
    let from = registers.stack_pointer;
    let read = |distance: isize| {
        let address = address(distance);
        memory.leads(from, address.wrapping_add(WORD))?.word(address)
    };
    let cfa = read(cfa)?;
    let return_address = match places.return_address {
        Some(distance) => Some(read(distance)?),
        None => None,
    };
    let frame_pointer = match places.frame_pointer {
        Some(distance) => read(distance)?,
        None => registers.frame_pointer,
    };
    let memory = memory.leads(from, cfa)?;
    let instruction = match return_address {
        Some(address) => address,
        None => memory.word(cfa.wrapping_sub(WORD))?,
    };
    Some((Registers { stack_pointer: cfa, instruction, frame_pointer }, memory))
}

#[inline(always)]
fn value(registers: Registers, base: Base) -> usize {
    let is_frame = base == Base::FramePointer;
    select_unpredictable(is_frame, registers.frame_pointer, registers.stack_pointer)
}
