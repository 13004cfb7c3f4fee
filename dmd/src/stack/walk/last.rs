//! The last stack of a thread, as a cache for its next walk.
//!
//! Consecutive stacks share most of their outer frames. A walk that meets such a frame verifies the
//! frames outside it, with two reads each, and does not walk them again.
#![expect(unsafe_code, reason = "zeros are an empty stack")]

use std::cell::Cell;
use std::hint::select_unpredictable;
use std::iter::Rev;
use std::slice::Iter;

mod addresses;
mod frame;
mod progress;
mod retrace;
#[cfg(test)]
mod tests;

pub(crate) use self::frame::Frame;
pub(crate) use self::progress::{Progress, Reuse};
pub(crate) use self::retrace::Caller;
use super::memory::CopiedWords;
use super::registers::Registers;
use crate::mem::lazy_slice::Zeroed;
use crate::mem::sys::Comparison;
use crate::stack::stack_cache::StackHash;

/// The number of frames that a stack stores: the innermost ones.
pub(crate) const MAX_FRAMES: usize = 128;

/// The last stack of a thread, from the outermost frame inwards.
pub(crate) struct LastStack {
    pub(crate) frames: [Cell<Frame>; NEW_FRAMES],
    pub(crate) length: Cell<usize>,
    /// The number of outermost frames that the next walk may reuse: all, if the stack is complete
    /// and the thread's own, otherwise 0.
    pub(crate) reusable: Cell<usize>,
    /// The hash that a stack of this thread begins with; empty if it is not known yet.
    pub(crate) seed: Cell<StackHash>,
    /// The hash of the stack from the outermost frame up to each second frame. The first `hashed`
    /// are valid.
    pub(crate) hashes: [Cell<StackHash>; MAX_FRAMES],
    pub(crate) hashed: Cell<usize>,
    /// The number of the interned stack up to each frame. The first `interned` are valid.
    pub(crate) numbers: [Cell<u32>; MAX_FRAMES],
    pub(crate) interned: Cell<usize>,
    /// The index of the innermost opaque frame, or 0.
    opaque: Cell<usize>,
    /// The number of outermost frames around the program: of the C library that has started the
    /// thread. None is opaque.
    around: Cell<usize>,
    /// The hash of these frames.
    hash_around: Cell<StackHash>,
    /// 1 if the hook's own frame lies inside of the innermost one, so that the next walk may go
    /// over this stack: all its frames are the thread's own. Otherwise 0.
    pub(crate) own: Cell<usize>,
    /// The registers where chains of frame pointers end on this thread; zeros if that is not known.
    root: Cell<Registers>,
    /// The frames of the current walk up to the first reused one, at the end, from the outermost
    /// inwards.
    new: [Cell<Frame>; NEW_FRAMES],
    /// The words of other stacks that the current walk has read.
    pub(crate) copied: CopiedWords,
}

/// The places for the frames of a walk.
pub(crate) type Places<'thread> = Rev<Iter<'thread, Cell<Frame>>>;

/// The innermost frame is the function that captures the registers. It is no part of the stack,
/// but the next walk begins at it, too. The hook's other frames, which depend on the build, are
/// dropped when a stack is interned.
pub(crate) const OWN_FRAMES: usize = 1;

/// The number of frames that a walk may find.
pub(crate) const NEW_FRAMES: usize = MAX_FRAMES + OWN_FRAMES;

const EMPTY_FRAME: Frame = Frame {
    registers: Registers { stack_pointer: 0, instruction: 0, frame_pointer: 0 },
    saved: Frame::UNCHANGED,
};

pub(crate) fn address_of_frame_pointer(frame: &Cell<Frame>) -> usize {
    frame.as_ptr().expose_provenance() + std::mem::offset_of!(Frame, registers.frame_pointer)
}

// SAFETY: all fields are cells of integers and of structs of integers.
unsafe impl Zeroed for LastStack {}

impl LastStack {
    #[cfg(test)]
    pub(crate) const fn new() -> Self {
        LastStack {
            frames: [const { Cell::new(EMPTY_FRAME) }; NEW_FRAMES],
            length: Cell::new(0),
            reusable: Cell::new(0),
            seed: Cell::new(StackHash::EMPTY),
            hashes: [const { Cell::new(StackHash::EMPTY) }; MAX_FRAMES],
            hashed: Cell::new(0),
            numbers: [const { Cell::new(0) }; MAX_FRAMES],
            interned: Cell::new(0),
            opaque: Cell::new(0),
            around: Cell::new(0),
            hash_around: Cell::new(StackHash::EMPTY),
            own: Cell::new(0),
            root: Cell::new(EMPTY_FRAME.registers),
            new: [const { Cell::new(EMPTY_FRAME) }; NEW_FRAMES],
            copied: CopiedWords::new(),
        }
    }

    /// Returns the hash that a stack of this thread begins with: of the number of the thread.
    #[inline(always)]
    pub(crate) fn seed_of(&self, thread: impl FnOnce() -> u32) -> StackHash {
        match self.seed.get() {
            StackHash::EMPTY => self.set_seed(thread()),
            seed => seed,
        }
    }

    #[cold]
    #[inline(never)]
    fn set_seed(&self, thread: u32) -> StackHash {
        let seed = StackHash::of_thread(thread);
        self.seed.set(seed);
        seed
    }

    /// Returns the frames that may be reused.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reusable(&self) -> &[Cell<Frame>] {
        self.frames.get(..self.reusable.get()).unwrap_or(&[])
    }

    /// Verifies the frames outwards from frame `from`, which the walk has reached. Returns the
    /// index of the outermost verified frame.
    ///
    /// A frame is verified if its inner frame is, and the inner frame's return address and saved
    /// frame pointer still lead to it. Both words lie above the stack pointer of the frame that the
    /// walk has reached, on the thread's own stack, so all are readable before the first is
    /// verified.
    // Not inlined: in a function of its own, all values are in registers.
    #[inline(never)]
    pub(crate) fn verify(&self, from: usize) -> usize {
        let outermost = self.opaque.get();
        if outermost > from {
            return self.verify_from_inside(from);
        }
        outermost
            + verified(self.frames.get(outermost..=from).unwrap_or(&[])).len().saturating_sub(1)
    }

    /// Verifies the frames outwards from one inside an opaque frame.
    #[cold]
    #[inline(never)]
    fn verify_from_inside(&self, from: usize) -> usize {
        let mut verified = from;
        for pair in self.frames.get(..=from).unwrap_or(&[]).windows(2).rev() {
            let [outer, inner] = pair else { break };
            if inner.get().is_opaque() || !compare(outer, inner).is_equal() {
                break;
            }
            verified -= 1;
        }
        verified
    }

    /// Returns the places for the frames of the current walk, after the first `count`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn places(&self, count: usize) -> Places<'_> {
        self.new.get(..NEW_FRAMES.saturating_sub(count)).unwrap_or(&[]).iter().rev()
    }

    /// Appends frames of the last stack to the `count` frames of the current walk, and returns the
    /// places after them; `None` if there is no space.
    #[cold]
    #[inline(never)]
    pub(crate) fn push_reused(
        &self,
        count: usize,
        outermost: usize,
        innermost: usize,
    ) -> Option<Places<'_>> {
        let frames = self.frames.get(outermost..=innermost).unwrap_or(&[]);
        let free = self.new.get(..NEW_FRAMES.checked_sub(count)?)?;
        let (rest, places) = free.split_at_checked(free.len().checked_sub(frames.len())?)?;
        let own = self.frames.as_ptr_range();
        let own = own.start.addr()..own.end.addr();
        for (place, frame) in places.iter().zip(frames) {
            let mut frame = frame.get();
            if own.contains(&frame.saved) {
                frame.saved = Frame::UNCHANGED;
            }
            place.set(frame);
        }
        Some(rest.iter().rev())
    }

    /// Ends a walk: the stack is `same` reused frames and the `walked` frames, of which the
    /// innermost `skip`, at most [`OWN_FRAMES`], are the hook's own. `has_opaque` states whether
    /// one of the walked frames is opaque. Returns whether all fit; otherwise the outermost are
    /// dropped.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(&self, same: usize, walked: usize, skip: usize, has_opaque: bool) -> bool {
        let own = skip.min(walked);
        let length = same + walked - own;
        if length > MAX_FRAMES {
            self.commit_too_many(same, walked, own);
            return false;
        }
        self.append(same, walked);
        self.length.set(length);
        self.own.set(own);
        self.keep(same);
        if has_opaque || self.opaque.get() >= same {
            self.find_opaque();
        }
        true
    }

    /// Ends a walk with more frames than are stored: the outermost are dropped.
    #[cold]
    #[inline(never)]
    fn commit_too_many(&self, same: usize, walked: usize, own: usize) {
        let over = same + walked - own - MAX_FRAMES;
        for (to, from) in (over..same).enumerate() {
            if let (Some(to), Some(from)) = (self.frames.get(to), self.frames.get(from)) {
                to.set(from.get());
            }
        }
        self.append(same.saturating_sub(over), walked);
        self.length.set(MAX_FRAMES);
        self.own.set(own);
        self.keep(0);
        self.find_opaque();
    }

    /// Copies the `walked` frames behind the outermost `same`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn append(&self, mut same: usize, walked: usize) {
        let mut new = self.new.get(NEW_FRAMES - walked..).unwrap_or(&[]);
        if same == 0
            && let Some((outermost, inner)) = new.split_first()
        {
            self.frames[0].set(outermost.get());
            (same, new) = (1, inner);
        }
        let frames = self.frames.get(same.wrapping_sub(1)..).unwrap_or(&[]);
        for (pair, frame) in frames.windows(2).zip(new) {
            let Frame { saved, registers } = frame.get();
            // Words: the compiler keeps a struct of them in memory.
            let Registers { stack_pointer, instruction, frame_pointer } = registers;
            let outer = address_of_frame_pointer(&pair[0]);
            let saved = select_unpredictable(saved == Frame::UNCHANGED, outer, saved);
            let registers = Registers { stack_pointer, instruction, frame_pointer };
            pair[1].set(Frame { saved, registers });
        }
    }

    /// Keeps what is known of the outermost `unchanged` frames, and forgets it of the others.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn keep(&self, unchanged: usize) {
        self.hashed.set(self.hashed.get().min(unchanged));
        self.interned.set(self.interned.get().min(unchanged));
        if self.around.get() > unchanged {
            // Their hash is no longer of these frames.
            self.around.set(0);
        }
    }

    #[cold]
    #[inline(never)]
    fn find_opaque(&self) {
        let frames = self.frames.get(..self.length.get() + self.own.get()).unwrap_or(&[]);
        self.opaque.set(frames.iter().rposition(|frame| frame.get().is_opaque()).unwrap_or(0));
    }

    /// Copies the addresses from the innermost frame outwards, as many as fit.
    pub(crate) fn copy_to<'a>(&self, addresses: &'a mut [usize]) -> &'a [usize] {
        let frames = self.frames.get(..self.length.get()).unwrap_or(&[]);
        let length = frames.len().min(addresses.len());
        for (place, frame) in addresses.iter_mut().zip(frames.iter().rev()) {
            *place = frame.get().address();
        }
        addresses.get(..length).unwrap_or(&[])
    }

    /// Clears the stack, so that the next walk reuses nothing.
    pub(crate) fn clear(&self) {
        self.length.set(0);
        self.reusable.set(0);
        self.hashed.set(0);
        self.interned.set(0);
        self.around.set(0);
        self.own.set(0);
    }

    /// Clears what an earlier thread has left.
    pub(crate) fn reset(&self) {
        self.clear();
        self.seed.set(StackHash::EMPTY);
        self.root.set(EMPTY_FRAME.registers);
        self.copied.clear();
    }

    pub(crate) fn innermost(&self) -> Option<usize> {
        let innermost = self.frames.get(self.length.get().checked_sub(1)?)?;
        Some(innermost.get().address())
    }
}

/// Returns these frames up to the outermost one that unchanged words lead to from the innermost.
#[cfg_attr(not(debug_assertions), inline(always))]
fn verified(mut frames: &[Cell<Frame>]) -> &[Cell<Frame>] {
    // In eights, without a branch for each frame.
    frames = verified_by::<9>(frames);
    frames = verified_by::<5>(frames);
    verified_by::<2>(frames)
}

/// Returns these frames up to the outermost one that unchanged words lead to, `N - 1` at once.
#[cfg_attr(not(debug_assertions), inline(always))]
fn verified_by<const N: usize>(mut frames: &[Cell<Frame>]) -> &[Cell<Frame>] {
    while let Some(chunk) = frames.last_chunk::<N>() {
        let mut all = compare(&chunk[N - 2], &chunk[N - 1]);
        for index in (1..N - 1).rev() {
            all = all.and(compare(&chunk[index - 1], &chunk[index]));
        }
        if !all.is_equal() {
            break;
        }
        frames = frames.get(..frames.len() - (N - 1)).unwrap_or(frames);
    }
    frames
}

/// Returns the index of the frame with these registers, if it is one of `frames`, which may be
/// reused. Removes those from `frames` that the walk has reached: outer frames have higher stack
/// pointers, each of its own.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn find(registers: Registers, frames: &mut Iter<'_, Cell<Frame>>) -> Option<usize> {
    loop {
        let mut outer = frames.clone();
        let frame = outer.next_back()?;
        if frame.get().registers.stack_pointer >= registers.stack_pointer {
            let known = frame.get().registers;
            if known.stack_pointer != registers.stack_pointer {
                return None;
            }
            *frames = outer;
            let is_same = known.instruction == registers.instruction
                && known.frame_pointer == registers.frame_pointer
                && !frame.get().is_opaque();
            return is_same.then(|| frames.len());
        }
        *frames = outer;
    }
}

/// Compares the words that lead from a frame to its outer one with the words of the last walk.
#[cfg_attr(not(debug_assertions), inline(always))]
fn compare(outer: &Cell<Frame>, inner: &Cell<Frame>) -> Comparison {
    let end = outer.get().registers.stack_pointer;
    Comparison::of(inner.get().saved, end, || {
        let Registers { instruction, frame_pointer, .. } = outer.get().registers;
        [frame_pointer, instruction]
    })
}
