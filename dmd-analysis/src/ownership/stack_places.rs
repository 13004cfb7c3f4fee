//! Places of threads' stacks and registers: the functions and variables that they belong to.

use rustc_hash::FxHashMap;

use crate::read::{Dump, StackFrame, StaticPlace};
use crate::symbols::types::{Local, LocalPlace, ThreadLocal, TypeId, Types};

use super::shape::short;

/// The thread of a word, and the part of the thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StackPlace<'d> {
    pub(super) thread: u64,
    pub(super) part: Part<'d>,
    /// True if the program's own functions are known, and the place is in none of them.
    pub(super) is_of_library: bool,
}

/// The name of the thread-local variables of a thread.
pub(super) const THREAD_LOCALS: &str = "thread-locals";

/// The part of a thread's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part<'d> {
    /// A variable of a function, or a thread-local one.
    Variable { function: &'d str, variable: Variable },
    /// The frame of a function, beside its variables.
    Function(&'d str),
    /// Registers beside variables.
    Registers,
    /// Thread-local variables.
    ThreadLocals,
    /// Of the stack, what no known frame has.
    Rest,
}

/// A place in a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// Its name and its type: `carts: Vec<Cart>`.
    pub(super) name: String,
    pub(super) of: TypeId,
    /// The offset of the place in it.
    pub(super) offset: u64,
}

/// The frames and variables of all threads of a dump, by their places.
#[derive(Debug)]
pub(super) struct StackPlaces<'d> {
    dump: &'d Dump,
    types: &'d Types,
    /// The numbers of frames, by their lowest address.
    frames: Vec<(u64, usize)>,
    /// The parts of variables in memory.
    memory: Vec<MemoryPart>,
    /// By thread and register: the variable, and the offset in it.
    registers: FxHashMap<(u64, u16), (usize, u64)>,
    /// By address: the number of the outermost frame whose register was saved there. It belongs to
    /// that function, not to the called one that saved it.
    saved: FxHashMap<u64, usize>,
    threads: FxHashMap<u64, Extent>,
    /// The thread pointers.
    pointers: FxHashMap<u64, u64>,
    /// The crate of the program's function `main`.
    program: Option<&'d str>,
}

/// A part of a variable in memory.
#[derive(Debug, Clone, Copy)]
struct MemoryPart {
    start: u64,
    end: u64,
    local: usize,
    offset: u64,
}

/// The addresses of the known frames of a thread.
#[derive(Debug, Clone, Copy)]
struct Extent {
    low: u64,
    high: u64,
    /// True if the frames go back to the start of the thread.
    is_whole: bool,
}

impl<'d> StackPlaces<'d> {
    pub(super) fn new(dump: &'d Dump, types: &'d Types) -> Self {
        let mut places = Self {
            dump,
            types,
            frames: Vec::new(),
            memory: Vec::new(),
            registers: FxHashMap::default(),
            saved: FxHashMap::default(),
            threads: FxHashMap::default(),
            pointers: FxHashMap::default(),
            program: None,
        };
        let functions = places.all().iter().flat_map(|frame| &frame.functions);
        places.program = functions.filter_map(|name| name.strip_suffix("::main")).find(is_crate);

        for thread in dump.extension.iter().flat_map(|ours| &ours.threads) {
            let pointer = thread.pointer.as_ref();
            let pointer = pointer.and_then(|text| u64::from_str_radix(text, 16).ok());
            places.pointers.extend(thread.tid.zip(pointer));
        }
        for (number, frame) in places.all().iter().enumerate() {
            let StackFrame { thread, low, high, is_first, .. } = *frame;
            places.frames.push((low, number));
            let saved = frame.registers.iter().filter_map(|register| register.place);
            places.saved.extend(saved.map(|place| (place, number)));
            let extent = Extent { low, high, is_whole: is_first };
            let known = places.threads.entry(thread).or_insert(extent);
            known.low = known.low.min(low);
            known.high = known.high.max(high);
            known.is_whole |= is_first;
        }
        places.frames.sort_unstable();
        for (number, local) in types.locals.iter().enumerate() {
            places.add(number, local);
        }
        places.memory.sort_by_key(|part| part.start);
        places
    }

    fn all(&self) -> &'d [StackFrame] {
        self.dump.extension.as_ref().map_or(&[], |ours| &ours.frames)
    }

    fn add(&mut self, number: usize, local: &Local) {
        let Some(frame) = self.all().get(local.frame) else { return };
        for part in &local.parts {
            let (local_number, offset) = (number, part.offset);
            match part.place {
                LocalPlace::Memory(start) => {
                    let size = part.size.unwrap_or(self.types.get(local.of).size);
                    let end = start.saturating_add(size);
                    self.memory.push(MemoryPart { start, end, local: local_number, offset });
                }
                LocalPlace::Register(register) => {
                    // Inlined calls may have the value of the caller's variable.
                    let key = (frame.thread, register);
                    self.registers.entry(key).or_insert((local_number, offset));
                }
            }
        }
    }

    /// Returns what a word belongs to; `None` if it is not of a thread whose frames are known.
    pub(super) fn find(&self, place: &StaticPlace) -> Option<StackPlace<'d>> {
        let name = place.name.as_deref().filter(|_| !place.is_static())?;
        let (what, number) = name.rsplit_once(" of thread ")?;
        let thread: u64 = number.parse().ok()?;
        let at = place.offset;
        let extent = self.threads.get(&thread);
        // Threads whose frames are not known are named alike, if those of another are.
        if extent.is_none() && self.frames.is_empty() {
            return None;
        }
        let is_in_frames = extent.is_some_and(|extent| (extent.low..extent.high).contains(&at));
        let is_whole = extent.is_some_and(|extent| extent.is_whole);
        let part = match what {
            "registers" => {
                let register = u16::try_from(at).ok();
                let found = register.and_then(|register| self.registers.get(&(thread, register)));
                found.map_or(Part::Registers, |&(local, offset)| self.variable(local, offset))
            }
            _ => match (self.variable_at(at), self.frame_at(at)) {
                (Some(part), _) => part,
                (None, Some(frame)) => Part::Function(function(frame, 0)),
                (None, None) if is_in_frames => Part::Rest,
                (None, None) => {
                    let other = if is_whole { Part::ThreadLocals } else { Part::Rest };
                    self.thread_local(thread, at).unwrap_or(other)
                }
            },
        };
        let is_of_library = self.program.is_some_and(|program| match part {
            Part::Variable { .. } | Part::ThreadLocals => false,
            Part::Function(name) => crate_of(name) != program,
            Part::Registers | Part::Rest => true,
        });
        Some(StackPlace { thread, part, is_of_library })
    }

    fn thread_local(&self, thread: u64, at: u64) -> Option<Part<'d>> {
        let below = self.pointers.get(&thread).and_then(|pointer| pointer.checked_sub(at));
        let found = below.and_then(|below| {
            self.types.thread_locals.iter().find_map(|known| {
                let offset = known.below.checked_sub(below)?;
                (offset < self.types.get(known.of).size).then_some((known, offset))
            })
        });
        let (ThreadLocal { name, of, .. }, offset) = found?;
        let name = format!("{name}: {}", short(self.types.name(*of)));
        let variable = Variable { name, of: *of, offset };
        Some(Part::Variable { function: THREAD_LOCALS, variable })
    }

    /// Returns the frame that a word on the stack belongs to.
    fn frame_at(&self, address: u64) -> Option<&'d StackFrame> {
        if let Some(&number) = self.saved.get(&address) {
            return self.all().get(number);
        }
        let after = self.frames.partition_point(|(low, _)| *low <= address);
        let (_, number) = self.frames[after.checked_sub(1)?];
        self.all().get(number).filter(|frame| address < frame.high)
    }

    fn variable_at(&self, address: u64) -> Option<Part<'d>> {
        let after = self.memory.partition_point(|part| part.start <= address);
        let holding = self.memory[..after].iter().filter(|part| address < part.end);
        // A call may have its argument where the caller's variable is: the outermost has the name
        // that is best known.
        let part = holding.min_by_key(|part| self.types.locals[part.local].depth)?;
        Some(self.variable(part.local, part.offset + (address - part.start)))
    }

    fn variable(&self, local: usize, offset: u64) -> Part<'d> {
        let Local { frame, depth, name, of, .. } = &self.types.locals[local];
        let name = format!("{name}: {}", short(self.types.name(*of)));
        let variable = Variable { name, of: *of, offset };
        Part::Variable { function: function(&self.all()[*frame], *depth), variable }
    }
}

/// Returns whether a name is of a crate, not of a module or a type.
fn is_crate(name: &&str) -> bool {
    !name.contains(|other: char| !other.is_alphanumeric() && other != '_')
}

/// Returns the crate of a function: `shop` of `<shop::Cart as Drop>::drop`.
fn crate_of(function: &str) -> &str {
    let begin = function.trim_start_matches(['<', '&', '*']);
    begin.find("::").map_or(begin, |end| &begin[..end])
}

/// Returns the function of a frame with this number of inlined calls around it.
fn function(frame: &StackFrame, depth: usize) -> &str {
    let at = frame.functions.len().checked_sub(1 + depth);
    let named = at.and_then(|at| frame.functions.get(at)).or(frame.functions.last());
    match named {
        Some(name) => name,
        None => frame.module.rsplit('/').next().unwrap_or_default(),
    }
}
