//! The walk itself, frame by frame outwards, until it comes to frames that are known from the last stack.

use std::cell::Cell;

use super::last::{Frame, LastStack, Registers, retrace};
use super::memory::Memory;
use super::rule::{Base, Places, Rule, Saved, WORD};

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
    pub(super) rule: Rule,
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
    let mut position = Position { registers: here, is_interrupted: true };
    let mut fresh = 0;
    // Frames of the last stack below the stack pointer are gone.
    let mut left = lasting.len();
    let end = loop {
        left = still_there(lasting, left, position.registers.stack_pointer);
        if let Some(met) = meets(lasting, left, position) {
            let certain = retrace(lasting, met);
            let Some(frame) = lasting.get(certain).map(Cell::get) else { break End::Early };
            if certain == 0 && !frame.is_opaque() {
                break End::Outermost;
            }
            let between = lasting.get(certain + 1..left).unwrap_or(&[]);
            if !between.iter().rev().all(|frame| last.keep(&mut fresh, frame.get())) {
                left = 0;
                break End::Early;
            }
            left = certain;
            position.registers = frame.registers;
            position.is_interrupted = frame.is_interrupted();
        }
        let (frame, next) = go_on(position, &mut memory, &look_up);
        if !last.keep(&mut fresh, frame) {
            left = 0;
            break End::Early;
        }
        match next {
            Ok(next) => position = next,
            Err(end) => {
                left = 0;
                break end;
            }
        }
    };
    let is_whole = last.replace(left, fresh);
    let end = if is_whole { end } else { End::Early };
    let lasts = end == End::Outermost && !memory.has_left();
    last.lasting.set(if lasts { last.length.get() } else { 0 });
    end
}

/// How many of the frames that are left lie at this stack pointer or above.
#[inline(always)]
fn still_there(lasting: &[Cell<Frame>], mut left: usize, stack_pointer: usize) -> usize {
    while let Some(inner) = left.checked_sub(1)
        && lasting.get(inner).is_some_and(|frame| {
            frame.get().registers.stack_pointer < stack_pointer
        })
    {
        left = inner;
    }
    left
}

/// Whether the walk has come to the innermost of the frames that are left: its index.
#[inline(always)]
fn meets(lasting: &[Cell<Frame>], left: usize, position: Position) -> Option<usize> {
    let met = left.checked_sub(1)?;
    let frame = lasting.get(met)?.get();
    let is_it = frame.registers == position.registers
        && !position.is_interrupted
        && !frame.is_opaque();
    is_it.then_some(met)
}

/// One frame outwards: this one as it is to be kept, and where the walk is then.
#[inline(always)]
fn go_on(
    position: Position,
    memory: &mut Memory,
    look_up: &impl Fn(Place) -> Option<Looked>,
) -> (Frame, Result<Position, End>) {
    let Position { registers, is_interrupted } = position;
    let opaque = if is_interrupted { Frame::INTERRUPTED } else { Frame::OPAQUE };
    let code = registers.instruction.wrapping_sub(usize::from(!is_interrupted));
    let looked = look_up(Place { code, is_exact: is_interrupted });
    let fixed = |saved| match looked {
        Some(Looked { is_fixed: true, .. }) if !is_interrupted => saved,
        _ => opaque,
    };
    let (saved, next) = match looked.map(|looked| looked.rule) {
        Some(Rule::Plain { base, cfa, frame_pointer }) => {
            match plain(registers, base, cfa, frame_pointer, memory) {
                Some((saved, caller)) => (fixed(saved), called(caller, false)),
                None => (opaque, Err(End::Early)),
            }
        }
        Some(Rule::Indirect { base, cfa, places, is_signal }) => {
            match indirect(registers, base, cfa, places, memory) {
                Some(caller) => (opaque, called(caller, is_signal)),
                None => (opaque, Err(End::Early)),
            }
        }
        Some(Rule::Outermost) => (fixed(Frame::UNCHANGED), Err(End::Outermost)),
        Some(Rule::Other) => (opaque, Err(End::Odd)),
        None => (opaque, Err(End::Early)),
    };
    // That nobody called it is in memory, not in a rule.
    let saved = if next.is_err() && !matches!(looked, Some(Looked { rule: Rule::Outermost, .. })) {
        opaque
    } else {
        saved
    };
    (Frame { registers, saved }, next)
}

/// The caller, unless there is none.
#[inline(always)]
fn called(registers: Registers, is_interrupted: bool) -> Result<Position, End> {
    if registers.instruction == 0 {
        return Err(End::Outermost);
    }
    Ok(Position { registers, is_interrupted })
}

/// Where the frame pointer was read, and the caller's registers.
#[inline(always)]
fn plain(
    registers: Registers,
    base: Base,
    cfa: usize,
    frame_pointer: Saved,
    memory: &mut Memory,
) -> Option<(usize, Registers)> {
    let cfa = value(registers, base).wrapping_add(cfa);
    memory.leads(registers.stack_pointer, cfa).then_some(())?;
    let instruction = memory.word(cfa.wrapping_sub(WORD))?;
    let (saved, frame_pointer) = match frame_pointer {
        Saved::Unchanged => (Frame::UNCHANGED, registers.frame_pointer),
        Saved::Below(distance) => {
            let saved = cfa.wrapping_sub(distance);
            (saved, memory.word(saved)?)
        }
    };
    Some((saved, Registers { stack_pointer: cfa, instruction, frame_pointer }))
}

#[cold]
fn indirect(
    registers: Registers,
    base: Base,
    cfa: isize,
    places: Places,
    memory: &mut Memory,
) -> Option<Registers> {
    let from = registers.stack_pointer;
    let mut read = |distance: isize| {
        let address = value(registers, base).wrapping_add_signed(distance);
        memory.leads(from, address.wrapping_add(WORD)).then(|| memory.word(address))?
    };
    let cfa = read(cfa)?;
    let instruction = match places.return_address {
        Some(distance) => Some(read(distance)?),
        None => None,
    };
    let frame_pointer = match places.frame_pointer {
        Some(distance) => read(distance)?,
        None => registers.frame_pointer,
    };
    memory.leads(from, cfa).then_some(())?;
    let instruction = match instruction {
        Some(instruction) => instruction,
        None => memory.word(cfa.wrapping_sub(WORD))?,
    };
    Some(Registers { stack_pointer: cfa, instruction, frame_pointer })
}

#[inline(always)]
fn value(registers: Registers, base: Base) -> usize {
    match base {
        Base::StackPointer => registers.stack_pointer,
        Base::FramePointer => registers.frame_pointer,
    }
}
