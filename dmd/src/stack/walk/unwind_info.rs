//! Unwind rules from a module's `.eh_frame`. It runs in hooks, so all its data is on the stack.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, Encoding, EndianSlice, Expression,
    NativeEndian, Operation, Reader, Register, RegisterRule, UnwindContext, UnwindContextStorage,
    UnwindExpression, UnwindSection, UnwindTableRow, X86_64,
};

use super::rule::{Base, CodeAddress, PlainRule, Rule, SavedOffsets, WORD};

/// The segment of a loaded module that contains its `.eh_frame` and the index `.eh_frame_hdr`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnwindInfo<'m> {
    pub(crate) start: usize,
    pub(crate) bytes: &'m [u8],
    /// The address of `.eh_frame_hdr`.
    pub(crate) index: usize,
}

/// The addresses of a frame description entry (FDE) and of its section.
struct Fde {
    /// The start of `.eh_frame`.
    eh_frame: usize,
    entry: usize,
    /// The start of the function that the entry describes.
    function: usize,
}

type Bytes<'m> = EndianSlice<'m, NativeEndian>;

/// Storage for a row of rules on the stack: all registers that are ever saved, and as many rows as
/// compilers push.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); 20];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

impl UnwindInfo<'_> {
    /// Returns the rule of this code. Returns `None` if the code has no unwind information, or in
    /// an unsupported format.
    pub(crate) fn rule(&self, place: CodeAddress) -> Option<Rule> {
        // The register numbers below are x86-64's.
        cfg!(target_arch = "x86_64").then_some(())?;
        let Fde { eh_frame, entry, .. } = self.search(place.code)?;
        let section = EhFrame::from(EndianSlice::new(self.from(eh_frame)?, NativeEndian));
        let bases = BaseAddresses::default().set_eh_frame(eh_frame as u64);
        let offset = EhFrameOffset(entry.checked_sub(eh_frame)?);
        let found = section.fde_from_offset(&bases, offset, EhFrame::cie_from_offset).ok()?;
        if !found.contains(place.code as u64) {
            return None;
        }
        let is_signal = found.is_signal_trampoline();
        let mut context = UnwindContext::<usize, OnStack>::new_in();
        let code = place.code as u64;
        let row = found.unwind_info_for_address(&section, &bases, &mut context, code);
        let encoding = found.cie().encoding();
        let Ok(row) = row else { return Some(Rule::Unsupported) };
        let row = Row { section: &section, encoding, place, row, is_signal };
        Some(row.rule().unwrap_or(Rule::Unsupported))
    }

    /// Returns the start of the function that contains this code, by the index.
    pub(crate) fn function_start(&self, code: usize) -> Option<usize> {
        self.search(code).map(|found| found.function)
    }

    /// Finds the entry that covers this code, by binary search in the index. It supports the one
    /// format that linkers write: version 1, offsets of four bytes, relative to the index.
    fn search(&self, code: usize) -> Option<Fde> {
        const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let index = self.from(self.index)?;
        let (head, rest) = index.split_first_chunk::<4>()?;
        let (eh_frame, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        if *head != HEAD {
            return None;
        }
        let eh_frame = relative(self.index + 4, *eh_frame);
        let count = u32::from_ne_bytes(*count) as usize;
        let table = rest.as_chunks::<4>().0.as_chunks::<2>().0.get(..count)?;
        let after = table.partition_point(|[first, _]| relative(self.index, *first) <= code);
        let [first, entry] = table.get(after.checked_sub(1)?)?;
        let function = relative(self.index, *first);
        Some(Fde { eh_frame, entry: relative(self.index, *entry), function })
    }

    /// Returns the bytes from this address on.
    fn from(&self, address: usize) -> Option<&[u8]> {
        self.bytes.get(address.checked_sub(self.start)?..)
    }
}

fn relative(base: usize, distance: [u8; 4]) -> usize {
    base.wrapping_add_signed(i32::from_ne_bytes(distance) as isize)
}

/// A row of the unwind table, and the context that its expressions need.
struct Row<'a, 'm> {
    section: &'a EhFrame<Bytes<'m>>,
    encoding: Encoding,
    place: CodeAddress,
    row: &'a UnwindTableRow<usize, OnStack>,
    is_signal: bool,
}

/// The symbolic value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Constant(i64),
    /// A register plus an offset.
    Offset(Base, i64),
    /// The memory at a register plus an offset.
    Deref(Base, i64),
}

impl Row<'_, '_> {
    /// Returns the rule of this row; `None` if it has no supported form.
    fn rule(&self) -> Option<Rule> {
        if self.row.register(X86_64::RA) == Some(RegisterRule::Undefined) {
            return Some(Rule::Outermost);
        }
        let cfa = match self.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Value::Offset(base(*register)?, *offset)
            }
            CfaRule::Expression(expression) => self.value(expression)?,
        };
        match cfa {
            Value::Offset(base, offset) if !self.is_signal => self.plain(base, offset),
            Value::Deref(base, offset) => self.indirect(base, offset),
            _ => None,
        }
    }

    fn plain(&self, base: Base, offset: i64) -> Option<Rule> {
        self.returns_below_cfa().then_some(())?;
        let cfa = usize::try_from(offset).ok()?;
        let saved = match self.row.register(X86_64::RBP) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => WORD,
            Some(RegisterRule::Offset(offset)) => {
                let below_cfa = usize::try_from(offset.checked_neg()?).ok()?;
                Some(below_cfa).filter(|&distance| distance > WORD)?
            }
            Some(_) => return None,
        };
        Some(Rule::Plain(PlainRule { base, cfa, saved }))
    }

    fn indirect(&self, base: Base, offset: i64) -> Option<Rule> {
        let saved = |rule: &RegisterRule<usize>| match rule {
            RegisterRule::Expression(expression) => match self.value(expression)? {
                Value::Offset(from, offset) if from == base => isize::try_from(offset).ok(),
                _ => None,
            },
            _ => None,
        };
        let return_address = match self.row.register(X86_64::RA)? {
            _ if self.returns_below_cfa() => None,
            rule => Some(saved(&rule)?),
        };
        let frame_pointer = match self.row.register(X86_64::RBP) {
            None | Some(RegisterRule::SameValue) => None,
            Some(rule) => Some(saved(&rule)?),
        };
        Some(Rule::Indirect {
            base,
            cfa: isize::try_from(offset).ok()?,
            saved_at: SavedOffsets { return_address, frame_pointer },
            is_signal: self.is_signal,
        })
    }

    fn returns_below_cfa(&self) -> bool {
        self.row.register(X86_64::RA) == Some(RegisterRule::Offset(-WORD.cast_signed() as i64))
    }

    /// Evaluates an expression symbolically, without registers or memory.
    fn value(&self, expression: &UnwindExpression<usize>) -> Option<Value> {
        let expression: Expression<Bytes<'_>> = expression.get(self.section).ok()?;
        let mut operations = expression.operations(self.encoding);
        let mut values = Values { values: [Value::Constant(0); 8], count: 0 };
        while let Some(operation) = operations.next().ok()? {
            self.operate(&operation, &mut values)?;
        }
        values.pop()
    }

    fn operate<R: Reader<Offset = usize>>(
        &self,
        operation: &Operation<R>,
        values: &mut Values,
    ) -> Option<()> {
        use Value::{Constant, Deref, Offset};
        let value = match *operation {
            Operation::RegisterOffset { register: X86_64::RA, offset, .. } => {
                // The exact instruction pointer is required.
                self.place.is_exact.then_some(())?;
                Constant(offset.checked_add_unsigned(self.place.code as u64)?)
            }
            Operation::RegisterOffset { register, offset, .. } => Offset(base(register)?, offset),
            Operation::UnsignedConstant { value } => Constant(value.cast_signed()),
            Operation::SignedConstant { value } => Constant(value),
            Operation::PlusConstant { value } => {
                plus(values.pop()?, Constant(value.cast_signed()))?
            }
            Operation::Deref { size: 8, space: false, .. } => match values.pop()? {
                Offset(base, offset) => Deref(base, offset),
                _ => return None,
            },
            Operation::Plus => {
                let right = values.pop()?;
                plus(values.pop()?, right)?
            }
            Operation::And | Operation::Ge | Operation::Shl => {
                let (Constant(right), Constant(left)) = (values.pop()?, values.pop()?) else {
                    return None;
                };
                Constant(match operation {
                    Operation::And => left & right,
                    Operation::Ge => i64::from(left >= right),
                    _ => left.checked_shl(u32::try_from(right).ok()?)?,
                })
            }
            _ => return None,
        };
        values.push(value)
    }
}

fn plus(left: Value, right: Value) -> Option<Value> {
    match (left, right) {
        (Value::Constant(left), Value::Constant(right)) => {
            left.checked_add(right).map(Value::Constant)
        }
        (Value::Offset(base, offset), Value::Constant(number))
        | (Value::Constant(number), Value::Offset(base, offset)) => {
            Some(Value::Offset(base, offset.checked_add(number)?))
        }
        _ => None,
    }
}

fn base(register: Register) -> Option<Base> {
    match register {
        X86_64::RSP => Some(Base::StackPointer),
        X86_64::RBP => Some(Base::FramePointer),
        _ => None,
    }
}

/// The stack of an expression's evaluation.
struct Values {
    values: [Value; 8],
    count: usize,
}

impl Values {
    fn push(&mut self, value: Value) -> Option<()> {
        *self.values.get_mut(self.count)? = value;
        self.count += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<Value> {
        self.count = self.count.checked_sub(1)?;
        self.values.get(self.count).copied()
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
