//! The walk itself, frame by frame outwards, until it comes to frames that are known from the last stack.

use std::cell::Cell;
use std::hint::select_unpredictable;

use super::cfi;
use super::last::{Frame, LastStack, Registers, retrace};
use super::memory::Memory;
use super::rule::{Base, CodeAddress, Places, Plain, Rule, WORD};
use crate::mem::sys::StackBounds;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the thread's outermost frame.
    Outermost,
    /// Before it: nothing is known of the code, or the stack is broken, or deeper than what is kept.
    Early,
    /// At a rule that only the reference unwinder can follow.
    Odd,
}

/// Where the walk has come to.
#[derive(Clone, Copy)]
struct Position {
    registers: Registers,
    is_interrupted: bool,
}

/// Where the walk is next, and what it may read there.
type Next = Result<(Position, Memory), End>;

/// Walks from there outwards, and leaves the frames in the thread's last stack, without the innermost `skip`.
#[inline(always)]
pub(crate) fn walk(start: Registers, own: StackBounds, last: &LastStack, skip: usize) -> End {
    let mut memory = Memory::new(own, start.stack_pointer);
    // Three values, not one struct: that stays in registers.
    let Registers { mut stack_pointer, mut instruction, mut frame_pointer } = start;
    let (mut same, mut fresh) = (0, 0);
    let end = 'walk: loop {
        // Plain rules, and what is known from the last stack: nearly all frames.
        let mut is_interrupted = false;
        loop {
            let registers = Registers { stack_pointer, instruction, frame_pointer };
            if let Some(met) = last.find(registers) {
                let certain = retrace(last.lasting(), met);
                let Some(frame) = last.lasting().get(certain).map(Cell::get) else { break };
                if certain == 0 && !frame.is_opaque() {
                    same = met + 1;
                    break 'walk End::Outermost;
                }
                if !last.keep_again(&mut fresh, certain + 1, met) {
                    break 'walk End::Early;
                }
                Registers { stack_pointer, instruction, frame_pointer } = frame.registers;
                if frame.is_opaque() {
                    is_interrupted = frame.is_interrupted();
                    break;
                }
            }
            let registers = Registers { stack_pointer, instruction, frame_pointer };
            let Some(rule) = cfi::plain(instruction.wrapping_sub(1)) else { break };
            let Some((saved, caller)) = caller(registers, rule, memory) else { break };
            if caller.instruction == 0 || !last.keep(&mut fresh, Frame { registers, saved }) {
                break;
            }
            Registers { stack_pointer, instruction, frame_pointer } = caller;
        }
        let registers = Registers { stack_pointer, instruction, frame_pointer };
        let mut position = Position { registers, is_interrupted };
        loop {
            let (frame, next) = go_on_oddly(position, memory);
            if !last.keep(&mut fresh, frame) {
                break 'walk End::Early;
            }
            match next {
                Ok(next) => (position, memory) = next,
                Err(end) => break 'walk end,
            }
            if !position.is_interrupted {
                break;
            }
        }
        Registers { stack_pointer, instruction, frame_pointer } = position.registers;
    };
    let is_whole = last.replace(same, fresh, skip);
    let end = if is_whole { end } else { End::Early };
    let lasts = end == End::Outermost && !memory.has_left();
    last.lasting.set(if lasts { last.length.get() } else { 0 });
    end
}

/// Where the caller's frame pointer was read, and the caller's registers, by a plain rule. `None` if it leads anywhere but up
/// the stack.
#[inline(always)]
fn caller(registers: Registers, rule: Plain, memory: Memory) -> Option<(usize, Registers)> {
    let cfa = value(registers, rule.base).wrapping_add(rule.cfa);
    // A jump would be guessed wrongly too often: where nothing was saved, the return address is read once more.
    let is_saved = rule.saved != 0;
    let saved = cfa.wrapping_sub(select_unpredictable(is_saved, rule.saved, WORD));
    let (instruction, word) = memory.frame(registers.stack_pointer, cfa, saved)?;
    let frame_pointer = select_unpredictable(is_saved, word, registers.frame_pointer);
    let saved = select_unpredictable(is_saved, saved, Frame::UNCHANGED);
    Some((saved, Registers { stack_pointer: cfa, instruction, frame_pointer }))
}

/// All that is rare.
#[cold]
#[inline(never)]
fn go_on_oddly(position: Position, memory: Memory) -> (Frame, Next) {
    let Position { registers, is_interrupted } = position;
    let saved = if is_interrupted { Frame::INTERRUPTED } else { Frame::OPAQUE };
    let opaque = Frame { registers, saved };
    let code = registers.instruction.wrapping_sub(usize::from(!is_interrupted));
    let looked = cfi::look_up(CodeAddress { code, is_exact: is_interrupted });
    let next = match looked.map(|looked| (looked.rule.rule(), looked.is_fixed)) {
        // A rule that was just looked up for the first time is as good as others.
        Some((Rule::Plain(rule), true))
            if !is_interrupted
                && let Some((saved, caller)) = caller(registers, rule, memory)
                && caller.instruction != 0 =>
        {
            let position = Position { registers: caller, is_interrupted: false };
            return (Frame { registers, saved }, Ok((position, memory)));
        }
        Some((Rule::Plain(rule), _)) => far_caller(registers, rule, memory)
            .map(|(registers, memory)| (Position { registers, is_interrupted: false }, memory)),
        Some((Rule::Indirect { base, cfa, places, is_signal }, _)) => {
            let base = value(registers, base);
            indirect(
                registers,
                memory,
                |distance| base.wrapping_add_signed(distance),
                (cfa, places),
            )
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

/// The caller by a plain rule, on this stack or another one.
fn far_caller(registers: Registers, rule: Plain, memory: Memory) -> Option<(Registers, Memory)> {
    let cfa = value(registers, rule.base).wrapping_add(rule.cfa);
    let memory = memory.leads(registers.stack_pointer, cfa)?;
    let frame_pointer = match rule.saved {
        0 => registers.frame_pointer,
        distance => memory.word(cfa.wrapping_sub(distance))?,
    };
    let instruction = memory.word(cfa.wrapping_sub(WORD))?;
    Some((Registers { stack_pointer: cfa, instruction, frame_pointer }, memory))
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
