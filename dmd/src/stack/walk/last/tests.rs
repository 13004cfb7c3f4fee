//! Last stacks of hand-made frames: reuse, verification and overflow.

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
        let mut new = 0;
        for index in inner..outer {
            let code = index.checked_sub(1).map_or(1, |index| self.words[4 * index + 3].get());
            assert!(last.push(&mut new, self.frame(index, code, index % 2 == 0)));
        }
        assert!(last.commit(same, new, 0));
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
    assert_eq!(last.find(registers), Some(3));
    assert_eq!(last.find(Registers { instruction: 21, ..registers }), None);
    assert_eq!(last.find(Registers { frame_pointer: 1, ..registers }), None);
    assert_eq!(verify(last.reusable(), 3), 0);
    // Another caller.
    stack.words[4 * 3 + 3].set(41);
    assert_eq!(verify(last.reusable(), 3), 2);
    stack.words[4 * 3 + 3].set(40);
    // Another saved frame pointer, in a frame that saves it.
    stack.words[4 * 4].set(7);
    assert_eq!(verify(last.reusable(), 3), 1);
    stack.words[4 * 4].set(0);
    // In a frame that does not save it, the word may change.
    stack.words[4 * 3].set(7);
    assert_eq!(verify(last.reusable(), 3), 0);
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
    assert_eq!(verify(last.reusable(), 2), 0);
}

#[test]
fn a_deep_stack_keeps_its_innermost_frames() {
    let last = LastStack::new();
    let codes: Vec<usize> = (1..=MAX_FRAMES).map(|code| 10 * code).collect();
    let stack = Stack::new(&codes);
    stack.keep(&last, 0, MAX_FRAMES, 0);
    let mut new = 0;
    for code in [7, 8] {
        assert!(last.push(&mut new, stack.frame(0, code, false)));
    }
    assert!(!last.commit(MAX_FRAMES, new, 0));
    let kept = addresses(&last);
    assert_eq!(kept.len(), MAX_FRAMES);
    assert_eq!(kept[..4], [7, 8, 1, 10]);
    assert_eq!(last.hashed.get(), 0);
}

#[test]
fn along_frame_pointers_only_differing_frames_are_written() {
    let last = LastStack::new();
    let stack = Stack::new(&[10, 20, 30]);
    stack.keep(&last, 0, 3, 0);
    let commit_addresses = |pushed: &[usize]| {
        let mut count = 0;
        for address in pushed {
            assert!(last.push_address(&mut count, *address));
        }
        let fits = last.commit_addresses(2, count);
        (fits, addresses(&last))
    };
    assert_eq!(commit_addresses(&[5, 6, 7]), (true, vec![5, 6, 7, 10, 20]));
    last.hashed.set(5);
    assert_eq!(commit_addresses(&[4, 6, 7]), (true, vec![4, 6, 7, 10, 20]));
    assert_eq!(last.hashed.get(), 4);
    assert_eq!(commit_addresses(&[7]), (true, vec![7, 10, 20]));
    assert_eq!(last.hashed.get(), 3);
    let deep: Vec<usize> = (0..MAX_FRAMES - 1).collect();
    let (fits, kept) = commit_addresses(&deep);
    assert!(!fits);
    assert_eq!((kept.len(), kept[0], kept[MAX_FRAMES - 1]), (MAX_FRAMES, 0, 10));
}
