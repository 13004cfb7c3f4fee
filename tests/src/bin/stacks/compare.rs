//! Compares one stack, taken by DMD and by the crate `backtrace`.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The place of a stack, by its peculiarity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    InPanic,
    InCallback,
    InSignal,
    OnSignalStack,
    OnOtherStack,
    Deep,
    InPlugin,
}

const KINDS: [Kind; 8] = [
    Kind::Plain,
    Kind::InPanic,
    Kind::InCallback,
    Kind::InSignal,
    Kind::OnSignalStack,
    Kind::OnOtherStack,
    Kind::Deep,
    Kind::InPlugin,
];

static COMPARED: [AtomicU64; KINDS.len()] = [const { AtomicU64::new(0) }; KINDS.len()];
static ALLOCATED: AtomicBool = AtomicBool::new(false);
static EQUAL: AtomicU64 = AtomicU64::new(0);
static DIFFERENT: Mutex<Option<Different>> = Mutex::new(None);

/// The stacks that were met by their hash: the high half of the hash, and a sum of the frames.
static BY_HASH: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];
/// The number of stacks that had a hash, of those whose hash was met before, and of those that
/// differ from the one met before.
static HASHED: AtomicU64 = AtomicU64::new(0);
static MET_AGAIN: AtomicU64 = AtomicU64::new(0);
static CONFUSED: AtomicU64 = AtomicU64::new(0);

/// Two stacks that should be equal, the innermost frame first.
struct Different {
    kind: Kind,
    own: Vec<usize>,
    is_whole: bool,
    reference: Vec<usize>,
}

/// The number of frames that DMD keeps.
pub(crate) const KEPT: usize = 128;

pub(crate) fn compared() -> u64 {
    COMPARED.iter().map(|count| count.load(Relaxed)).sum()
}

pub(crate) fn all_agree() -> bool {
    compared() == EQUAL.load(Relaxed) && CONFUSED.load(Relaxed) == 0
}

/// Takes the stack from here outwards, both ways. Neither may allocate: signal handlers call this
/// too.
#[inline(never)]
pub(crate) fn take(kind: Kind) {
    let (mut own, mut reference) = ([0; 2 * KEPT], [0; 512]);
    let allocations = || memreport::heap_counters().map(|counters| counters.allocations);
    let before = allocations();
    let (length, is_whole) = dmd::__private::stack(&mut own).unwrap_or((0, false));
    let hash = dmd::__private::stack_hash();
    ALLOCATED.fetch_or(allocations() != before, Relaxed);
    let mut count = 0;
    let mut found = false;
    // Compared from the caller of this function on: the two are called from different places in it.
    let this = take as fn(Kind) as *const ();
    let keep = |frame: &backtrace::Frame| {
        if found && !frame.ip().is_null() && count < reference.len() {
            reference[count] = frame.ip().addr();
            count += 1;
        }
        found |= frame.symbol_address().addr() == this.addr();
        true
    };
    backtrace::trace(keep);
    let own = &own[1.min(length)..length];
    let reference = &reference[..count];
    if let Some(hash) = hash {
        meet(hash, &reference[..count.min(KEPT - 1)]);
    }
    let expected = &reference[..count.min(KEPT - 1)];
    let equal = found && own == expected && is_whole == (count < KEPT);
    // Where the reference took over, its own frames are in front. Readers of dumps drop them.
    let first = own.iter().position(|frame| Some(frame) == expected.first());
    let kept = first.and_then(|first| own.get(first..)).unwrap_or(&[]);
    let is_beginning = MAY_BE_SHORTER && found && !kept.is_empty() && begins(expected, kept);
    SHORTER.fetch_add(u64::from(is_beginning && kept.len() + 1 < expected.len()), Relaxed);
    let equal = equal || is_beginning;
    COMPARED[kind as usize].fetch_add(1, Relaxed);
    if equal {
        EQUAL.fetch_add(1, Relaxed);
    } else if let Ok(mut different) = DIFFERENT.try_lock() {
        let (own, reference) = (own.to_vec(), reference.to_vec());
        different.get_or_insert(Different { kind, own, is_whole, reference });
    }
}

/// True if frames may be missing at the outer end: only for this processor is there an unwinder of
/// ours that reads tables, and frame pointers lead neither through signals nor to `_start`.
const MAY_BE_SHORTER: bool = !cfg!(target_arch = "x86_64");

/// The most bytes between two addresses in a function that a signal interrupted: where it was, and
/// where its last call returned to, which frame pointers lead to.
const INTERRUPTED: usize = 64;

/// Returns whether a stack begins with these frames, apart from one in each interrupted function.
fn begins(expected: &[usize], own: &[usize]) -> bool {
    let is_near = |(one, other): (&usize, &usize)| one.abs_diff(*other) <= INTERRUPTED;
    let others = expected.iter().zip(own).filter(|(one, other)| one != other).count();
    own.len() <= expected.len() && others <= own.len() / 8 && expected.iter().zip(own).all(is_near)
}

/// The number of stacks without the reference's outermost frames, apart from `_start`.
static SHORTER: AtomicU64 = AtomicU64::new(0);

/// Compares a stack with the last one of the same hash.
fn meet(hash: u64, frames: &[usize]) {
    HASHED.fetch_add(1, Relaxed);
    let sum = frames.iter().fold(0_u64, |sum, frame| {
        sum.rotate_left(5).wrapping_add(*frame as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    let word = hash & 0xffff_ffff_0000_0000 | sum >> 32;
    let Ok(index) = usize::try_from(hash % BY_HASH.len() as u64) else { return };
    let place = &BY_HASH[index];
    let before = place.swap(word, Relaxed);
    if before >> 32 == word >> 32 {
        MET_AGAIN.fetch_add(1, Relaxed);
        CONFUSED.fetch_add(u64::from(before != word), Relaxed);
    }
}

/// Prints the counts of compared stacks. Returns `false` if any differ, or if taking them
/// allocated.
pub(crate) fn report(out: &mut dyn Write) -> io::Result<bool> {
    for (kind, count) in KINDS.iter().zip(&COMPARED) {
        writeln!(out, "{kind:?}: {}", count.load(Relaxed))?;
    }
    writeln!(out, "compared: {}, equal: {}", compared(), EQUAL.load(Relaxed))?;
    if MAY_BE_SHORTER {
        writeln!(out, "equal but shorter by more than _start: {}", SHORTER.load(Relaxed))?;
    }
    let [hashed, again, confused] =
        [&HASHED, &MET_AGAIN, &CONFUSED].map(|count| count.load(Relaxed));
    writeln!(out, "hashed: {hashed}, met again: {again}, confused: {confused}")?;
    if ALLOCATED.load(Relaxed) {
        writeln!(out, "taking a stack allocated")?;
    }
    if let Ok(different) = DIFFERENT.lock()
        && let Some(different) = different.as_ref()
    {
        writeln!(out, "{:?}, whole: {}, ours:", different.kind, different.is_whole)?;
        print(&different.own, out)?;
        writeln!(out, "the reference's:")?;
        print(&different.reference, out)?;
    }
    Ok(all_agree() && !ALLOCATED.load(Relaxed))
}

fn print(frames: &[usize], out: &mut dyn Write) -> io::Result<()> {
    for address in frames {
        let mut name = None;
        backtrace::resolve(std::ptr::without_provenance_mut(*address), |symbol| {
            name = name.take().or_else(|| symbol.name().map(|name| name.to_string()));
        });
        writeln!(out, "  {address:#x} {}", name.as_deref().unwrap_or("?"))?;
    }
    Ok(())
}
