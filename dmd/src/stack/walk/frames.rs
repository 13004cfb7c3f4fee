//! The walk by unwind rules: frame by frame outwards, until it meets unchanged frames of the last
//! stack.

use std::cell::Cell;
use std::hint::select_unpredictable;

use super::cfi;
use super::last::{
    Caller, Frame, LastStack, MAX_FRAMES, OWN_FRAMES, Progress, Reuse, address_of_frame_pointer,
};
use super::memory::Memory;
use super::registers::Registers;
use super::rule::{Base, CodeAddress, PlainRule, Rule, SavedOffsets, WORD};
use crate::mem::sys::{self, StackBounds, THREADS_START_UNSEEN};

/// The reason why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It reached the thread's outermost frame.
    Outermost,
    /// It ended before: the code has no rule, the stack is corrupt, or it is too deep.
    Truncated,
    /// It reached a rule that only the reference unwinder can follow.
    Unsupported,
}

/// The end of a walk.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// True if the walk has stayed on the thread's own stack.
    pub(crate) is_own: bool,
}

/// A step from a frame to its caller, which depends on the frame's registers and two words alone.
struct PlainStep {
    /// The address of the caller's saved frame pointer, or the one to use if it was not saved.
    saved: usize,
    caller: Registers,
}

/// The registers of the current frame.
#[derive(Clone, Copy)]
struct Position {
    registers: Registers,
    is_interrupted: bool,
}

/// The next position and the readable memory there, or the end of the walk.
type Next<'thread> = Result<(Position, Memory<'thread>), End>;

/// A frame that the slow path walked, and the continuation of the walk.
struct Step<'thread> {
    /// `None` for one that stacks do not have.
    frame: Option<Frame>,
    next: Next<'thread>,
}

/// Walks outwards from `start`, and commits the frames to the thread's last stack.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn walk(start: Registers, own: StackBounds, last: &LastStack) -> End {
    let Some(rules) = cfi::plain_rules() else {
        return walk_rest(Progress::begin(start, last), own);
    };
    let memory = Memory::new(own, start.stack_pointer, &last.copied);
    let step = move |slot: &Cell<Frame>, registers: Registers, next: &Cell<Frame>| {
        let rule = rules.before(registers.instruction)?;
        replace_in_place(slot, registers, rule, memory, next)
    };
    let has_caller = |registers| has_caller(registers, own, last);
    match last.retrace(start, step, has_caller) {
        None => last.end(),
        Some(progress) => walk_rest(progress, own),
    }
}

/// Walks outwards from the current frame, and commits the frames.
#[inline(never)]
fn walk_rest(progress: Progress<'_>, own: StackBounds) -> End {
    // A copy, which the compiler keeps in registers, unlike an argument.
    let mut progress = progress;
    let mut reused = Reuse::Part;
    if let Some(rules) = cfi::plain_rules() {
        let memory = Memory::new(own, progress.registers.stack_pointer, &progress.last.copied);
        reused = progress.advance(|place, registers| {
            let rule = rules.before(registers.instruction)?;
            replace(place, registers, rule, memory, Frame::UNCHANGED)
        });
        if matches!(reused, Reuse::Rest) && !memory.has_left_own_stack() {
            return commit(&progress, Ended { end: End::Outermost, is_own: true });
        }
    }
    walk_slowly(progress, reused, own)
}

/// Walks on where the last stack does not lead to the outermost frame.
#[cold]
#[inline(never)]
fn walk_slowly(mut progress: Progress<'_>, reused: Reuse, own: StackBounds) -> End {
    let ended = walk_on(&mut progress, reused, own);
    commit(&progress, ended)
}

/// Commits the frames of a walk that has ended.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn commit(progress: &Progress<'_>, Ended { end, is_own }: Ended) -> End {
    let end = if progress.commit(OWN_FRAMES) { end } else { End::Truncated };
    let last = progress.last;
    let is_whole = end == End::Outermost && is_own;
    last.reusable.set(if is_whole { last.length.get() } else { 0 });
    // One with more frames than are stored is not taken over in parts, but may be walked over.
    let is_deep = end == End::Truncated && last.length.get() == MAX_FRAMES;
    if !(is_whole || is_deep && is_own) {
        last.own.set(0);
    }
    end
}

/// Walks outwards by unwind rules from the current frame, at which frames of the last stack were
/// `reused`.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn walk_on(progress: &mut Progress<'_>, mut reused: Reuse, own: StackBounds) -> Ended {
    let start = progress.registers.stack_pointer;
    let mut memory = Memory::new(own, start, &progress.last.copied);
    let mut rules = cfi::plain_rules();
    let end = 'walk: loop {
        // The fast path: plain rules, and frames of the last stack. Nearly all frames take it.
        let mut is_interrupted = false;
        // Before the first rule is cached, there is no fast path.
        while let Some(rules) = rules {
            match reused {
                Reuse::Part => {}
                Reuse::Rest => break 'walk End::Outermost,
                Reuse::TooMany => break 'walk End::Truncated,
                Reuse::UpToOpaque { is_interrupted: is } => {
                    is_interrupted = is;
                    break;
                }
            }
            let registers = progress.registers;
            let Some(rule) = rules.before(registers.instruction) else { break };
            let Some(PlainStep { saved, caller }) =
                caller(registers, rule, memory, Frame::UNCHANGED)
            else {
                break;
            };
            if caller.instruction == 0 || !progress.push(Frame { registers, saved }) {
                break;
            }
            progress.registers = caller;
            reused = progress.reuse();
        }
        let mut position = Position { registers: progress.registers, is_interrupted };
        loop {
            let Step { frame, next } = step_slow(position, memory);
            if frame.is_some_and(|frame| !progress.push_opaque(frame)) {
                break 'walk End::Truncated;
            }
            match next {
                Ok(next) => (position, memory) = next,
                Err(end) => break 'walk end,
            }
            if !position.is_interrupted {
                break;
            }
        }
        rules = cfi::plain_rules();
        progress.registers = position.registers;
        if memory.has_left_own_stack() {
            progress.look_for_all();
        }
        reused = if rules.is_some() { progress.reuse() } else { Reuse::Part };
    };
    Ended { end, is_own: !memory.has_left_own_stack() }
}

/// The offset of the return address from the CFA, in bytes.
const BELOW: isize = -WORD.cast_signed();

/// Returns the caller by a plain rule, and the address of its saved frame pointer, which is
/// `unchanged` if it was not saved. Returns `None` if the rule does not lead up the stack.
#[cfg_attr(not(debug_assertions), inline(always))]
fn caller(
    registers: Registers,
    rule: PlainRule,
    memory: Memory<'_>,
    unchanged: usize,
) -> Option<PlainStep> {
    let saved_at = SavedAt::by_rule(registers, rule, memory)?;
    Some(PlainStep { saved: saved_at.address_or(unchanged), caller: saved_at.read(registers) })
}

/// Returns whether a frame has a caller by a plain rule. It is on the thread's own stack.
// Not inlined, so that the steps of a walk are.
#[cold]
#[inline(never)]
fn has_caller(registers: Registers, own: StackBounds, last: &LastStack) -> bool {
    let memory = Memory::new(own, registers.stack_pointer, &last.copied);
    let rule = cfi::plain_rules().and_then(|rules| rules.before(registers.instruction));
    let step = rule.and_then(|rule| caller(registers, rule, memory, Frame::UNCHANGED));
    step.is_some_and(|step| step.caller.instruction != 0)
}

/// Replaces the frame in this slot by the one with these registers, and returns its caller by a
/// plain rule, as [`caller`] does.
#[cfg_attr(not(debug_assertions), inline(always))]
fn replace(
    slot: &Cell<Frame>,
    registers: Registers,
    rule: PlainRule,
    memory: Memory<'_>,
    unchanged: usize,
) -> Option<Registers> {
    let saved_at = SavedAt::by_rule(registers, rule, memory)?;
    Some(saved_at.store_and_read(slot, registers, unchanged))
}

/// Does the same in a walk over the last stack, where `next` is the slot of the caller.
///
/// The caller probably lies where the frame in its slot did. So the processor reads its return
/// address before it has looked up the rule that leads there: otherwise each of these look-ups
/// would wait for the one before.
#[cfg_attr(not(debug_assertions), inline(always))]
fn replace_in_place(
    slot: &Cell<Frame>,
    registers: Registers,
    rule: PlainRule,
    memory: Memory<'_>,
    next: &Cell<Frame>,
) -> Option<Caller> {
    let unchanged = address_of_frame_pointer(next);
    let saved_at = SavedAt::by_rule(registers, rule, memory)?;
    let known = next.get().registers.stack_pointer;
    let Some(cfa) = sys::predicted(saved_at.cfa, known) else {
        return Some(Caller::Elsewhere(saved_at.store_and_read(slot, registers, unchanged)));
    };
    let saved_at = SavedAt { cfa, ..saved_at };
    Some(Caller::InPlace(saved_at.store_and_read(slot, registers, unchanged)))
}

/// The places where a frame's plain rule says that its caller's registers are saved.
#[derive(Clone, Copy)]
struct SavedAt {
    cfa: usize,
    frame_pointer: usize,
    /// False if the frame pointer is in its register.
    is_saved: bool,
}

impl SavedAt {
    /// Returns the places; `None` if the rule does not lead up the stack.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn by_rule(registers: Registers, rule: PlainRule, memory: Memory<'_>) -> Option<Self> {
        let cfa = value(registers, rule.base).wrapping_add(rule.cfa);
        let frame_pointer = memory.saved_at(registers.stack_pointer, cfa, rule.saved)?;
        Some(SavedAt { cfa, frame_pointer, is_saved: rule.saved != WORD })
    }

    /// Stores the frame, and reads its caller's registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store_and_read(
        self,
        slot: &Cell<Frame>,
        registers: Registers,
        unchanged: usize,
    ) -> Registers {
        // Stored before the caller's registers are read, which take their place.
        slot.set(Frame { registers, saved: self.address_or(unchanged) });
        self.read(registers)
    }

    /// Returns the address of the caller's saved frame pointer, or `unchanged` if it was not saved.
    // Selected without a branch, which would be mispredicted too often, as in `read`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn address_or(self, unchanged: usize) -> usize {
        select_unpredictable(self.is_saved, self.frame_pointer, unchanged)
    }

    /// Reads the caller's registers. If no frame pointer was saved, the return address is read
    /// twice.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read(self, registers: Registers) -> Registers {
        let SavedAt { cfa, frame_pointer: saved_at, is_saved } = self;
        let (instruction, saved) = (sys::word_from::<BELOW>(cfa), sys::word_at(saved_at));
        let frame_pointer = select_unpredictable(is_saved, saved, registers.frame_pointer);
        Registers { stack_pointer: cfa, instruction, frame_pointer }
    }
}

/// Walks one frame on the slow path: rules that are not plain, permanent and cached, and other
/// stacks than the thread's own.
#[cold]
#[inline(never)]
fn step_slow(position: Position, memory: Memory<'_>) -> Step<'_> {
    let Position { registers, is_interrupted } = position;
    let saved = if is_interrupted { Frame::INTERRUPTED } else { Frame::OPAQUE };
    let opaque = Frame { registers, saved };
    let code = registers.instruction.wrapping_sub(usize::from(!is_interrupted));
    let found = cfi::look_up(CodeAddress { code, is_exact: is_interrupted });
    let found = found.map(|found| (found.rule.rule(), found.is_permanent));
    // A plain, permanent rule that was not cached yet: as on the fast path.
    if !is_interrupted
        && let Some((Rule::Plain(rule), true)) = found
        && let Some(PlainStep { saved, caller }) = caller(registers, rule, memory, Frame::UNCHANGED)
        && caller.instruction != 0
    {
        let position = Position { registers: caller, is_interrupted: false };
        let frame = Frame { registers, saved };
        return Step { frame: Some(frame), next: Ok((position, memory)) };
    }
    let next = match found {
        Some((Rule::Plain(rule), _)) => {
            caller_on_any_stack(registers, rule, memory).map(|caller| caller.position(false))
        }
        Some((Rule::Indirect { base, cfa, saved_at, is_signal }, _)) => {
            let base = value(registers, base);
            let address = |distance| base.wrapping_add_signed(distance);
            caller_by_indirect_rule(registers, memory, address, cfa, saved_at)
                .map(|caller| caller.position(is_signal))
        }
        Some((Rule::Outermost, is_permanent)) => {
            let frame = Frame { registers, saved: Frame::UNCHANGED };
            let frame = if is_permanent && !is_interrupted { frame } else { opaque };
            return Step { frame: Some(frame), next: Err(End::Outermost) };
        }
        Some((Rule::Unsupported, _)) => {
            return Step { frame: Some(opaque), next: Err(End::Unsupported) };
        }
        // The dynamic linker's first function, outside initialisers, has no unwind information.
        None if memory.is_outermost(registers.stack_pointer) => {
            return Step { frame: Some(opaque), next: Err(End::Outermost) };
        }
        // The reference leaves out the function that starts a thread, too.
        None if THREADS_START_UNSEEN => {
            return Step { frame: None, next: Err(End::Outermost) };
        }
        None => None,
    };
    let next = match next {
        // A return address of 0 means that the frame has no caller.
        Some((Position { registers: Registers { instruction: 0, .. }, .. }, _)) => {
            Err(End::Outermost)
        }
        Some(next) => Ok(next),
        None => Err(End::Truncated),
    };
    Step { frame: Some(opaque), next }
}

/// A caller that the slow path found, and the readable memory there.
struct FoundCaller<'thread> {
    registers: Registers,
    memory: Memory<'thread>,
}

impl<'thread> FoundCaller<'thread> {
    fn position(self, is_interrupted: bool) -> (Position, Memory<'thread>) {
        (Position { registers: self.registers, is_interrupted }, self.memory)
    }
}

/// Returns the caller by a plain rule, on this stack or another one.
fn caller_on_any_stack(
    registers: Registers,
    rule: PlainRule,
    memory: Memory<'_>,
) -> Option<FoundCaller<'_>> {
    let cfa = value(registers, rule.base).wrapping_add(rule.cfa);
    let memory = memory.advance(registers.stack_pointer, cfa)?;
    let frame_pointer = match rule.saved {
        WORD => registers.frame_pointer,
        distance => memory.word(cfa.wrapping_sub(distance))?,
    };
    let instruction = memory.word(cfa.wrapping_sub(WORD))?;
    let registers = Registers { stack_pointer: cfa, instruction, frame_pointer };
    Some(FoundCaller { registers, memory })
}

/// Returns the caller by an indirect rule.
fn caller_by_indirect_rule(
    registers: Registers,
    memory: Memory<'_>,
    address: impl Fn(isize) -> usize,
    cfa: isize,
    saved_at: SavedOffsets,
) -> Option<FoundCaller<'_>> {
    let from = registers.stack_pointer;
    let read = |distance: isize| {
        let address = address(distance);
        memory.advance(from, address.wrapping_add(WORD))?.word(address)
    };
    let cfa = read(cfa)?;
    let return_address = match saved_at.return_address {
        Some(distance) => Some(read(distance)?),
        None => None,
    };
    let frame_pointer = match saved_at.frame_pointer {
        Some(distance) => read(distance)?,
        None => registers.frame_pointer,
    };
    let memory = memory.advance(from, cfa)?;
    let instruction = match return_address {
        Some(address) => address,
        None => memory.word(cfa.wrapping_sub(WORD))?,
    };
    let registers = Registers { stack_pointer: cfa, instruction, frame_pointer };
    Some(FoundCaller { registers, memory })
}

#[inline(always)]
fn value(registers: Registers, base: Base) -> usize {
    let is_frame = base == Base::FramePointer;
    select_unpredictable(is_frame, registers.frame_pointer, registers.stack_pointer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::walk::{modules, registers};

    #[inline(never)]
    fn walk_at_depth(depth: usize, last: &LastStack) -> End {
        let end = match depth {
            0 => {
                let own = sys::stack_bounds().expect("a thread has a stack");
                walk(registers::capture(), own, last)
            }
            _ => walk_at_depth(depth - 1, last),
        };
        // The call above is no tail call: each has a frame.
        std::hint::black_box(end)
    }

    #[test]
    fn a_stack_that_was_walked_to_its_end_is_reused() {
        if !sys::HAS_UNWIND_INFO || !cfg!(target_arch = "x86_64") {
            // Not run: there are no rules to walk by.
            return;
        }
        modules::record_loaded(modules::Moment::Initialiser);
        let last = LastStack::new();
        assert_eq!(walk_at_depth(0, &last), End::Outermost);
        assert_eq!(last.reusable.get(), last.length.get());
        assert_eq!(walk_at_depth(2 * MAX_FRAMES, &last), End::Truncated);
        assert!(last.length.get() > 0 && last.reusable.get() == 0);
        assert_eq!(walk_at_depth(3, &last), End::Outermost);
        assert_eq!(last.reusable.get(), last.length.get());
    }
}
