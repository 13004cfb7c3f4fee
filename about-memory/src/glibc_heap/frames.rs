//! The frames of stopped threads, by the unwind tables of the modules that their code is in (System
//! V ABI for x86-64; DWARF 5, 6.4).
//!
//! They are found in the copy of the stacks, after the process has gone on.

mod tables;

use std::fs::File;
use std::ops::Range;

use self::tables::{Extent, Modules};
use super::image::{Image, Root};
use super::threads::{
    FRAME_POINTER, Frame, RED_ZONE, Registers, STACK_POINTER, Saved, ThreadState,
};
use crate::other_process::Mapping;
use memreport_analysis::read::StaticPlace;

/// The most frames of a thread: of deeper stacks, the outer ones stay without a function.
const MAX_FRAMES: usize = 4096;

/// Adds to an image what the modules' files tell: the frames of its threads, and the addresses of
/// modules that are not loaded where their first bytes are. `open` opens the file of a mapping.
pub(super) fn add(
    image: &mut Image,
    mappings: &[Mapping],
    open: &dyn Fn(&Mapping) -> Option<File>,
) {
    let mut modules = Modules::new(mappings, open);
    let roots = std::mem::take(&mut image.roots);
    image.roots = roots.into_iter().flat_map(|root| by_file(root, &mut modules)).collect();
    let stacks: Vec<(&Range<u64>, &Vec<u8>)> = image
        .roots
        .iter()
        .filter(|(root, _)| root.name.is_some())
        .map(|(root, bytes)| (&root.range, bytes))
        .collect();
    let word = |at: u64| {
        let (range, bytes) = stacks.iter().find(|(range, _)| range.contains(&at))?;
        let start = usize::try_from(at - range.start).ok()?;
        Some(u64::from_le_bytes(bytes.get(start..)?.first_chunk().copied()?))
    };
    let walk = |thread| walk(thread, &mut modules, &word);
    image.frames = image.threads.iter().flat_map(walk).collect();
}

/// Corrects a root of a module by the module's file: where its first address is, and where the
/// module ends. The kernel may have put other memory right behind it.
fn by_file(
    (mut root, mut bytes): (Root, Vec<u8>),
    modules: &mut Modules<'_>,
) -> impl Iterator<Item = (Root, Vec<u8>)> + use<> {
    let mut behind = None;
    if root.name.is_none()
        && let Some(Extent { bias, end }) = modules.extent(&root.module)
    {
        root.base = bias;
        let inside = end.clamp(root.range.start, root.range.end) - root.range.start;
        let rest =
            bytes.split_off(usize::try_from(inside).map_or(bytes.len(), |at| at.min(bytes.len())));
        let start = root.range.start + bytes.len() as u64;
        if !rest.is_empty() {
            behind = Some((Root::named(StaticPlace::OTHER_MEMORY, start..root.range.end), rest));
            root.range.end = start;
        }
    }
    std::iter::once((root, bytes)).chain(behind)
}

/// Returns the frames of a thread, the innermost first.
fn walk(
    thread: &ThreadState,
    modules: &mut Modules<'_>,
    word: &dyn Fn(u64) -> Option<u64>,
) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut registers = Registers::of_thread(&thread.registers);
    // One byte more than the current instruction, so that the byte before is of the code.
    let mut code = thread.instruction_pointer.wrapping_add(1);
    let mut low = thread.stack_pointer().saturating_sub(RED_ZONE);
    while frames.len() < MAX_FRAMES {
        let Some((module, offset)) = modules.place(code) else { break };
        let caller = match modules.caller(code.wrapping_sub(1), &registers, word) {
            Some(caller) => caller,
            // Code without a table, as a compiler at run time makes it, keeps frame pointers.
            None => match by_frame_pointer(&registers, word) {
                Some(caller) if modules.has_code(caller.code) => caller,
                _ => break,
            },
        };
        let stack_pointer = registers.value(STACK_POINTER).unwrap_or(low);
        let is_first = caller.code == 0;
        let thread = thread.number;
        let range = low..caller.high.max(low);
        frames.push(Frame { thread, module, offset, range, registers, is_first });
        // A stack that does not go on upwards is damaged, or another one.
        if is_first || caller.high <= stack_pointer {
            break;
        }
        (registers, code, low) = (caller.registers, caller.code, caller.high);
        // A signal interrupted the caller before an instruction, not behind a call.
        if caller.is_interrupted {
            code = code.wrapping_add(1);
        }
    }
    frames
}

/// The caller of a frame.
#[derive(Clone, Debug)]
struct Caller {
    /// The address behind the call; 0 if there is no caller.
    code: u64,
    /// The end of the called frame: the canonical frame address.
    high: u64,
    registers: Registers,
    /// It called nothing, but was interrupted by a signal.
    is_interrupted: bool,
}

fn by_frame_pointer(registers: &Registers, word: &dyn Fn(u64) -> Option<u64>) -> Option<Caller> {
    let pointer = registers.value(FRAME_POINTER)?;
    if pointer < registers.value(STACK_POINTER)? || pointer % 8 != 0 {
        return None;
    }
    let high = pointer.checked_add(16)?;
    let mut callers = Registers::default();
    callers.set(FRAME_POINTER, Saved { value: word(pointer)?, place: Some(pointer) });
    callers.set(STACK_POINTER, Saved { value: high, place: None });
    let code = word(pointer + 8)?;
    Some(Caller { code, high, registers: callers, is_interrupted: false })
}
