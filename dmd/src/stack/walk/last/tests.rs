//! Last stacks of hand-made frames: reuse, verification and overflow.

use std::ops::Range;

use super::*;

/// A stack of these return addresses, from the innermost frame outwards. A frame has four words:
/// the last is the return address, the first the frame pointer if it was saved.
struct Stack {
    words: Vec<Cell<usize>>,
}

impl Stack {
    fn new(addresses: &[usize]) -> Self {
        let words = addresses.iter().flat_map(|address| [0, 0, 0, *address]).map(Cell::new);
        Stack { words: words.collect() }
    }

    fn frame(&self, index: usize, code: usize, saves: bool) -> Frame {
        let stack_pointer = self.words.as_ptr().wrapping_add(4 * index).expose_provenance();
        let saved = if saves { stack_pointer } else { Frame::UNCHANGED };
        let registers = Registers { stack_pointer, instruction: code, frame_pointer: 0 };
        Frame { registers, saved }
    }

    /// Commits the frames from `inner` to `outer`, as a walk does.
    fn keep(&self, last: &LastStack, inner: usize, outer: usize, same: usize) {
        self.keep_with(last, inner..outer, same, None);
    }

    /// Commits frames, of which one may be opaque.
    fn keep_with(
        &self,
        last: &LastStack,
        indices: Range<usize>,
        same: usize,
        opaque: Option<usize>,
    ) {
        let mut places = last.places(0);
        for index in indices {
            let code = index.checked_sub(1).map_or(1, |index| self.words[4 * index + 3].get());
            let mut frame = self.frame(index, code, index % 2 == 0);
            if opaque == Some(index) {
                frame.saved = Frame::OPAQUE;
            }
            places.next().expect("there is space").set(frame);
        }
        assert!(last.commit(same, NEW_FRAMES - places.len(), 0, opaque.is_some()));
        last.reusable.set(last.length.get());
    }
}

fn addresses(last: &LastStack) -> Vec<usize> {
    let mut addresses = [0; MAX_FRAMES];
    last.copy_to(&mut addresses).to_vec()
}

#[test]
fn unchanged_frames_are_verified_and_changed_ones_are_not() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60]);
    stack.keep(&last, 0, 6, 0);
    assert_eq!(addresses(&last), [1, 10, 20, 30, 40, 50]);
    let registers = stack.frame(2, 20, false).registers;
    let find = |registers| find(registers, &mut last.reusable().iter());
    assert_eq!(find(registers), Some(3));
    assert_eq!(find(Registers { instruction: 21, ..registers }), None);
    assert_eq!(find(Registers { frame_pointer: 1, ..registers }), None);
    assert_eq!(last.verify(3), 0);
    // Another caller.
    stack.words[4 * 3 + 3].set(41);
    assert_eq!(last.verify(3), 2);
    stack.words[4 * 3 + 3].set(40);
    // Another saved frame pointer, in a frame that saves it.
    stack.words[4 * 4].set(7);
    assert_eq!(last.verify(3), 1);
    stack.words[4 * 4].set(0);
    // In a frame that does not save it, the word may change.
    stack.words[4 * 3].set(7);
    assert_eq!(last.verify(3), 0);
}

#[test]
fn walked_frames_replace_those_that_returned() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60]);
    stack.keep(&last, 0, 6, 0);
    last.hashed.set(6);
    // Only the two outermost frames are equal.
    stack.keep(&last, 3, 4, 2);
    assert_eq!(addresses(&last), [30, 40, 50]);
    assert_eq!(last.hashed.get(), 2);
    assert_eq!(last.verify(2), 0);
}

#[test]
fn a_deep_stack_keeps_its_innermost_frames() {
    let last = LastStack::new();
    let codes: Vec<usize> = (1..=MAX_FRAMES).map(|code| 10 * code).collect();
    let stack = Stack::new(&codes);
    stack.keep(&last, 0, MAX_FRAMES, 0);
    for (place, code) in last.places(0).zip([7, 8]) {
        place.set(stack.frame(0, code, false));
    }
    assert!(!last.commit(MAX_FRAMES, 2, 0, false));
    let kept = addresses(&last);
    assert_eq!(kept.len(), MAX_FRAMES);
    assert_eq!(kept[..4], [7, 8, 1, 10]);
    assert_eq!(last.hashed.get(), 0);
}

#[test]
fn frames_that_the_walk_has_passed_are_not_looked_at_again() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60]);
    stack.keep(&last, 0, 6, 0);
    let mut left = last.reusable().iter();
    // Frame 3 from inside is the third from outside.
    let fourth = stack.frame(3, 30, false).registers;
    assert_eq!(find(fourth, &mut left), Some(2));
    assert_eq!(left.len(), 2);
    let inner = stack.frame(1, 10, false).registers;
    assert_eq!(find(inner, &mut left), None);
    let above_all = Registers { stack_pointer: usize::MAX, ..inner };
    assert_eq!((find(above_all, &mut left), left.len()), (None, 0));
    assert_eq!(find(fourth, &mut left), None);
}

#[test]
fn every_number_of_frames_is_verified_up_to_the_changed_one() {
    let last = LastStack::new();
    let codes: Vec<usize> = (1..=20).map(|code| 10 * code).collect();
    let stack = Stack::new(&codes);
    stack.keep(&last, 0, 20, 0);
    for from in 0..20 {
        assert_eq!(last.verify(from), 0);
        // The frame `changed` from outside is reached by the word of its inner one.
        for changed in 0..from {
            let word = &stack.words[4 * (18 - changed) + 3];
            let before = word.replace(1);
            assert_eq!(last.verify(from), changed + 1, "from {from}");
            word.set(before);
        }
    }
}

#[test]
fn nothing_outside_an_opaque_frame_is_verified() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60]);
    // Frame 2 from inside is the fourth from outside.
    stack.keep_with(&last, 0..6, 0, Some(2));
    assert_eq!(last.opaque.get(), 3);
    assert_eq!((last.verify(5), last.verify(4)), (3, 3));
    assert_eq!(find(stack.frame(2, 20, false).registers, &mut last.reusable().iter()), None);
    // From outside of it, too.
    assert_eq!(last.verify(2), 0);
    // It has returned.
    stack.keep(&last, 2, 4, 2);
    assert_eq!((last.opaque.get(), last.verify(3)), (0, 0));
}

#[test]
fn reused_frames_are_walked_ones_again() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60]);
    stack.keep(&last, 0, 6, 0);
    last.places(0).next().expect("there is space").set(stack.frame(0, 7, false));
    // All but the outermost two and the innermost one.
    assert_eq!(last.push_reused(1, 2, 4).expect("there is space").len(), NEW_FRAMES - 4);
    assert!(last.commit(2, 4, 0, false));
    last.reusable.set(last.length.get());
    assert_eq!(addresses(&last), [7, 10, 20, 30, 40, 50]);
    assert_eq!(last.verify(5), 0);
    assert!(last.push_reused(NEW_FRAMES - 2, 2, 4).is_none(), "there is no space");
}

#[test]
fn a_walk_that_begins_elsewhere_takes_over_the_frames_that_it_meets() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60, 70, 80, 0]);
    let step = |place: &Cell<Frame>, registers: Registers| {
        let index =
            (registers.stack_pointer - stack.words.as_ptr().addr()) / size_of::<[usize; 4]>();
        place.set(Frame { registers, saved: Frame::UNCHANGED });
        Some(stack.frame(index + 1, stack.words.get(4 * index + 3)?.get(), false).registers)
    };
    // At the second frame, whose return address has changed.
    let begin = || {
        stack.keep(&last, 0, 9, 0);
        Progress::begin(stack.frame(1, 5, false).registers, &last)
    };
    let mut progress = begin();
    assert!(matches!(progress.advance(step), Reuse::Rest));
    assert!(progress.commit(0));
    assert_eq!(addresses(&last), [5, 20, 30, 40, 50, 60, 70, 80]);
    // The frames that it meets are unchanged up to the seventh, and then the outermost one is.
    let mut progress = begin();
    stack.words[4 * 6 + 3].set(71);
    assert!(matches!(progress.advance(step), Reuse::Part));
    assert_eq!(progress.registers, stack.frame(6, 60, false).registers);
    assert!(matches!(progress.advance(step), Reuse::Rest));
    assert!(progress.commit(0));
    assert_eq!(addresses(&last), [5, 20, 30, 40, 50, 60, 71, 80]);
    // Too few frames are unchanged.
    let mut progress = begin();
    stack.words[4 * 3 + 3].set(41);
    assert!(matches!(progress.advance(step), Reuse::Part));
    assert_eq!(progress.registers, stack.frame(2, 20, false).registers);
    // It meets none, and stops at the frame without a caller.
    let mut progress = begin();
    progress.last.clear();
    progress.look_for_all();
    assert!(matches!(progress.advance(step), Reuse::Part));
    assert_eq!(progress.registers, stack.frame(8, 80, false).registers);
}

#[test]
fn the_hash_of_the_frames_around_the_program_is_of_these_frames() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60]);
    stack.keep(&last, 0, 6, 0);
    last.find_around(|address| address < 40);
    let hash = StackHash::of_thread(1);
    let found = last.hash_with_around(hash);
    assert!(found.is_some_and(|found| found != hash));
    // The chain leads to them by two words: here, above the frame inside of them.
    let word = stack.words[4 * 3 + 3].replace(41);
    assert_eq!(last.hash_with_around(hash), None);
    stack.words[4 * 3 + 3].set(word);
    assert_eq!(last.hash_with_around(hash), found);
    // A walk that keeps both frames keeps their hash.
    stack.keep(&last, 0, 4, 2);
    assert_eq!(last.hash_with_around(hash), found);
    // The word that leads from one to the other has changed.
    let word = stack.words[4 * 4 + 3].replace(51);
    assert_eq!(last.hash_with_around(hash), None);
    stack.words[4 * 4 + 3].set(word);
    assert_eq!(last.hash_with_around(hash), found);
    // One of them is replaced.
    stack.keep(&last, 0, 5, 1);
    assert_eq!(last.hash_with_around(hash), None);
    assert_eq!(last.around.get(), 0);
}

/// Walks over the last stack from the innermost frame, and commits the frames. Returns the number
/// of steps, and whether the way over the last stack led to the end.
fn retrace(stack: &Stack, last: &LastStack) -> (usize, bool) {
    let steps = Cell::new(0);
    let step = |from: Registers, unchanged: usize| {
        (from.instruction != 0).then_some(())?;
        steps.set(steps.get() + 1);
        let index = (from.stack_pointer - stack.words.as_ptr().addr()) / (4 * size_of::<usize>());
        // The second word of a frame is 1 if it is twice as big.
        let outer = index + 1 + stack.words[4 * index + 1].get();
        let code = stack.words.get(4 * outer - 1)?.get();
        let saves = index.is_multiple_of(2);
        let frame_pointer = if saves { stack.words[4 * index].get() } else { from.frame_pointer };
        let saved = if saves { stack.frame(index, 0, saves).saved } else { unchanged };
        let caller = Registers { frame_pointer, ..stack.frame(outer, code, false).registers };
        Some((saved, caller))
    };
    let replace = |slot: &Cell<Frame>, registers: Registers, next: &Cell<Frame>| {
        let (saved, caller) = step(registers, address_of_frame_pointer(next))?;
        slot.set(Frame { registers, saved });
        let is_in_place = next.get().registers.stack_pointer == caller.stack_pointer;
        Some(if is_in_place { Caller::InPlace(caller) } else { Caller::Elsewhere(caller) })
    };
    let to_caller =
        |from| step(from, Frame::UNCHANGED).filter(|(_, caller)| caller.instruction != 0);
    let here = stack.frame(0, 1, false).registers;
    let Some(mut progress) = last.retrace(here, replace, |from| to_caller(from).is_some()) else {
        return (steps.get(), true);
    };
    while !matches!(progress.reuse(), Reuse::Rest) {
        let Some((saved, caller)) = to_caller(progress.registers) else {
            let registers = progress.registers;
            assert!(progress.push(Frame { registers, saved: Frame::UNCHANGED }));
            break;
        };
        assert!(progress.push(Frame { registers: progress.registers, saved }));
        progress.registers = caller;
    }
    progress.commit(OWN_FRAMES);
    last.reusable.set(last.length.get());
    (steps.get(), false)
}

#[test]
fn a_walk_over_the_last_stack_steps_where_it_has_changed() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60, 70, 80, 90, 0]);
    assert_eq!(retrace(&stack, &last), (10, false));
    let all = [10, 20, 30, 40, 50, 60, 70, 80, 90];
    assert_eq!(addresses(&last), all);
    for known in [&last.hashed, &last.interned] {
        known.set(9);
    }
    assert_eq!((retrace(&stack, &last), last.hashed.get()), ((0, true), 9));
    for changed in 0..9 {
        let word = &stack.words[4 * changed + 3];
        let before = word.replace(5);
        let mut expected = all;
        expected[changed] = 5;
        // One step to the changed frame, and one from it.
        assert_eq!((retrace(&stack, &last).0, addresses(&last)), (2, expected.to_vec()));
        assert!(last.hashed.get() <= 8 - changed && last.interned.get() <= 8 - changed);
        word.set(before);
        retrace(&stack, &last);
        assert_eq!(addresses(&last), all);
        last.hashed.set(9);
    }
}

#[test]
fn a_walk_over_the_last_stack_sees_saved_frame_pointers() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60, 70, 80, 90, 0]);
    retrace(&stack, &last);
    // All outer frames get another frame pointer, up to the next one that saves it.
    stack.words[4 * 4].set(7);
    assert_eq!(retrace(&stack, &last), (3, true));
    let frame_pointer = |index: usize| last.frames[index].get().registers.frame_pointer;
    assert_eq!([2, 3, 4, 5].map(frame_pointer), [0, 7, 7, 0]);
    assert_eq!(retrace(&stack, &last), (0, true));
    stack.words[4 * 4].set(0);
    retrace(&stack, &last);
    assert_eq!([2, 3, 4, 5].map(frame_pointer), [0; 4]);
}

#[test]
fn a_walk_leaves_the_last_stack_where_frames_lie_elsewhere() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60, 70, 80, 90, 0]);
    retrace(&stack, &last);
    stack.words[4 * 3 + 1].set(1);
    // The caller's return address is another word of the stack.
    for word in [&stack.words[4 * 3 + 3], &stack.words[4 * 4 + 3]] {
        word.set(word.get() + 1);
    }
    assert_eq!(retrace(&stack, &last), (2, false));
    assert_eq!(addresses(&last), [10, 20, 30, 51, 60, 70, 80, 90]);
    assert_eq!(retrace(&stack, &last), (0, true));
    stack.words[4 * 3 + 1].set(0);
    stack.words[4 * 4 + 3].set(52);
    assert!(!retrace(&stack, &last).1);
    assert_eq!(addresses(&last), [10, 20, 30, 41, 52, 60, 70, 80, 90]);
}

#[test]
fn a_return_address_of_0_ends_a_walk_over_the_last_stack() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60, 70, 80, 90, 0]);
    retrace(&stack, &last);
    for (changed, expected) in [(5, vec![10, 20, 30, 40, 50]), (0, vec![])] {
        let word = stack.words[4 * changed + 3].replace(0);
        assert!(!retrace(&stack, &last).1);
        assert_eq!(addresses(&last), expected);
        // The slow path leaves such an outermost frame opaque.
        last.frames[0].set(Frame { saved: Frame::OPAQUE, ..last.frames[0].get() });
        stack.words[4 * changed + 3].set(word);
        retrace(&stack, &last);
        assert_eq!(addresses(&last), [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    }
}

#[test]
fn a_walk_over_the_last_stack_ends_at_an_opaque_frame() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30, 40, 50, 60, 70, 80, 90, 0]);
    retrace(&stack, &last);
    let fourth = last.frames[3].get();
    last.frames[3].set(Frame { saved: Frame::OPAQUE, ..fourth });
    last.opaque.set(3);
    let (steps, is_whole) = retrace(&stack, &last);
    assert!(steps > 0 && !is_whole);
    assert_eq!(addresses(&last), [10, 20, 30, 40, 50, 60, 70, 80, 90]);
    // The hook's own frame.
    let own = last.frames[9].get();
    last.frames[9].set(Frame { saved: Frame::OPAQUE, ..own });
    last.find_opaque();
    assert_eq!(last.opaque.get(), 9);
    let (steps, is_whole) = retrace(&stack, &last);
    assert!(steps > 0 && !is_whole);
    assert_eq!(addresses(&last), [10, 20, 30, 40, 50, 60, 70, 80, 90]);
}

#[test]
fn a_walk_over_a_stack_that_is_not_the_threads_own_does_not_begin() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 0]);
    retrace(&stack, &last);
    last.own.set(0);
    let no_step = |_: &Cell<Frame>, _, _: &Cell<Frame>| None;
    let here = stack.frame(0, 1, false).registers;
    let progress = last.retrace(here, no_step, |_| false);
    assert!(progress.is_some_and(|progress| progress.registers == here));
}
