//! Unwind rules from a module's `.eh_frame`. Everything is on the stack: this runs in hooks.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, Encoding, EndianSlice, Expression,
    NativeEndian, Operation, Reader, Register, RegisterRule, UnwindContext, UnwindContextStorage,
    UnwindExpression, UnwindSection, UnwindTableRow, X86_64,
};

use super::rule::{Base, CodeAddress, Places, Plain, Rule, WORD};

/// The part of a module, as it lies in memory, that holds its `.eh_frame` and the index to it, `.eh_frame_hdr`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnwindInfo<'m> {
    pub(crate) start: usize,
    pub(crate) bytes: &'m [u8],
    /// The address of the index.
    pub(crate) index: usize,
}

type Bytes<'m> = EndianSlice<'m, NativeEndian>;

/// Rules of as many registers as the processor has that are ever saved, and as many rows as compilers push.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); 20];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

impl UnwindInfo<'_> {
    /// The rule of the code there; `None` if nothing is said of it, or not in a way that we read.
    pub(crate) fn rule(&self, place: CodeAddress) -> Option<Rule> {
        // Which register has which number is known of this processor only.
        cfg!(target_arch = "x86_64").then_some(())?;
        let (frames, entry) = self.search(place.code)?;
        let section = EhFrame::from(EndianSlice::new(self.from(frames)?, NativeEndian));
        let bases = BaseAddresses::default().set_eh_frame(frames as u64);
        let offset = EhFrameOffset(entry.checked_sub(frames)?);
        let found = section.fde_from_offset(&bases, offset, EhFrame::cie_from_offset).ok()?;
        if !found.contains(place.code as u64) {
            return None;
        }
        let is_signal = found.is_signal_trampoline();
        let mut context = UnwindContext::<usize, OnStack>::new_in();
        let code = place.code as u64;
        let row = found.unwind_info_for_address(&section, &bases, &mut context, code);
        let encoding = found.cie().encoding();
        let Ok(row) = row else { return Some(Rule::Other) };
        let row = Row { section: &section, encoding, place, row, is_signal };
        Some(row.rule().unwrap_or(Rule::Other))
    }

    /// The addresses of `.eh_frame`, and of the entry that covers the code if any does: by bisection in the index, in the one
    /// form that linkers write it (version 1, four bytes each, relative to itself).
    fn search(&self, code: usize) -> Option<(usize, usize)> {
        const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let index = self.from(self.index)?;
        let (head, rest) = index.split_first_chunk::<4>()?;
        let (frames, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        if *head != HEAD {
            return None;
        }
        let frames = relative(self.index + 4, *frames);
        let count = u32::from_ne_bytes(*count) as usize;
        let table = rest.as_chunks::<4>().0.as_chunks::<2>().0.get(..count)?;
        let after = table.partition_point(|[first, _]| relative(self.index, *first) <= code);
        let [_, entry] = table.get(after.checked_sub(1)?)?;
        Some((frames, relative(self.index, *entry)))
    }

    /// The bytes from this address on.
    fn from(&self, address: usize) -> Option<&[u8]> {
        self.bytes.get(address.checked_sub(self.start)?..)
    }
}

fn relative(base: usize, distance: [u8; 4]) -> usize {
    base.wrapping_add_signed(i32::from_ne_bytes(distance) as isize)
}

/// One row of the unwind table, with what its expressions need.
struct Row<'a, 'm> {
    section: &'a EhFrame<Bytes<'m>>,
    encoding: Encoding,
    place: CodeAddress,
    row: &'a UnwindTableRow<usize, OnStack>,
    is_signal: bool,
}

/// What an expression comes to, as far as rules need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(i64),
    /// That far from a register.
    From(Base, i64),
    /// What the memory holds that far from a register.
    At(Base, i64),
}

impl Row<'_, '_> {
    /// `None` if it is not among the forms that have a rule.
    fn rule(&self) -> Option<Rule> {
        if self.row.register(X86_64::RA) == Some(RegisterRule::Undefined) {
            return Some(Rule::Outermost);
        }
        let cfa = match self.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Value::From(base(*register)?, *offset)
            }
            CfaRule::Expression(expression) => self.value(expression)?,
        };
        match cfa {
            Value::From(base, offset) if !self.is_signal => self.plain(base, offset),
            Value::At(base, offset) => self.indirect(base, offset),
            _ => None,
        }
    }

    fn plain(&self, base: Base, offset: i64) -> Option<Rule> {
        self.returns_below_cfa().then_some(())?;
        let cfa = usize::try_from(offset).ok()?;
        let saved = match self.row.register(X86_64::RBP) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => 0,
            Some(RegisterRule::Offset(offset)) => {
                usize::try_from(offset.checked_neg()?).ok().filter(|&distance| distance > 0)?
            }
            Some(_) => return None,
        };
        Some(Rule::Plain(Plain { base, cfa, saved }))
    }

    fn indirect(&self, base: Base, offset: i64) -> Option<Rule> {
        let saved = |rule: &RegisterRule<usize>| match rule {
            RegisterRule::Expression(expression) => match self.value(expression)? {
                Value::From(from, offset) if from == base => isize::try_from(offset).ok(),
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
            places: Places { return_address, frame_pointer },
            is_signal: self.is_signal,
        })
    }

    fn returns_below_cfa(&self) -> bool {
        self.row.register(X86_64::RA) == Some(RegisterRule::Offset(-WORD.cast_signed() as i64))
    }

    /// Works an expression out as far as it goes without looking at registers or memory.
    fn value(&self, expression: &UnwindExpression<usize>) -> Option<Value> {
        let expression: Expression<Bytes<'_>> = expression.get(self.section).ok()?;
        let mut operations = expression.operations(self.encoding);
        let mut values = Values { values: [Value::Number(0); 8], count: 0 };
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
        use Value::{At, From, Number};
        let value = match *operation {
            Operation::RegisterOffset { register: X86_64::RA, offset, .. } => {
                // Only where the instruction pointer stands is known, not where it will.
                self.place.is_exact.then_some(())?;
                Number(offset.checked_add_unsigned(self.place.code as u64)?)
            }
            Operation::RegisterOffset { register, offset, .. } => From(base(register)?, offset),
            Operation::UnsignedConstant { value } => Number(value.cast_signed()),
            Operation::SignedConstant { value } => Number(value),
            Operation::PlusConstant { value } => plus(values.pop()?, Number(value.cast_signed()))?,
            Operation::Deref { size: 8, space: false, .. } => match values.pop()? {
                From(base, offset) => At(base, offset),
                _ => return None,
            },
            Operation::Plus => {
                let right = values.pop()?;
                plus(values.pop()?, right)?
            }
            Operation::And | Operation::Ge | Operation::Shl => {
                let (Number(right), Number(left)) = (values.pop()?, values.pop()?) else {
                    return None;
                };
                Number(match operation {
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
        (Value::Number(left), Value::Number(right)) => left.checked_add(right).map(Value::Number),
        (Value::From(base, offset), Value::Number(number))
        | (Value::Number(number), Value::From(base, offset)) => {
            Some(Value::From(base, offset.checked_add(number)?))
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

/// The stack that an expression is worked out on.
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
