//! Attributes blocks that no reporter claims to the reporters of crates and scopes.
//!
//! A block belongs to the crate of the innermost function that requested it, apart from Rust's
//! libraries: the rule of `heap tree --by crate`, here by the symbol table alone. Of scopes, the
//! innermost one with a reporter counts.

mod code;

use std::sync::Arc;

use memreport::__private::{
    Origin, OriginReporter, origin_reporters, scope_link, scope_name_number,
};

use self::code::{Code, CodeKind};
use crate::mem::local_interner::LocalInterner;
use crate::mem::pages::PageList;
use crate::sample::plan::WholePlan;
use crate::stack::site::{self, Site};

/// The reporters of origins, and what is known of the stacks seen so far.
pub(super) struct Origins {
    /// Reporters by number, which is their position.
    reporters: Vec<&'static OriginReporter>,
    /// The numbers of scopes' names, with the numbers of their reporters.
    scopes: Vec<(u16, u32)>,
    /// `None` if no crate has a reporter, and C's heap is not tracked.
    code: Option<Arc<Code>>,
    /// The stacks seen so far.
    stacks: LocalInterner<u32>,
    /// By the number of a stack in `stacks`: the number of the reporter plus one; 0 is none.
    by_stack: PageList<u32>,
}

impl Origins {
    /// Finds the reporters, and reads the symbols of the program if a crate has one. Nothing of it
    /// may happen while blocks are counted.
    pub(super) fn find(WholePlan { hooks, .. }: WholePlan) -> Self {
        let reporters = origin_reporters();
        let mut scopes = Vec::new();
        let mut crates = Vec::new();
        for (reporter, number) in reporters.iter().zip(0..) {
            match reporter.origin() {
                Origin::Crates(names) => crates.extend(names.iter().map(|name| (*name, number))),
                Origin::Scope(name) => scopes.push((scope_name_number(name), number)),
            }
        }
        let is_needed = !crates.is_empty() || hooks.has_c_heap();
        let code = is_needed.then(|| Code::read(&crates));
        let (stacks, by_stack) = (LocalInterner::new(), PageList::new());
        Origins { reporters, scopes, code, stacks, by_stack }
    }

    /// Returns whether a return address is in code that allocates for its callers, as far as
    /// symbols were read.
    pub(super) fn is_for_others(&self, return_address: usize) -> bool {
        let kind = self.code.as_deref().map(|code| code.kind_of(return_address));
        kind == Some(CodeKind::Library)
    }

    /// Returns the number of the reporter of a block that was allocated at this site.
    #[inline]
    pub(super) fn of(&mut self, site: Site) -> Option<u32> {
        if self.reporters.is_empty() {
            return None;
        }
        self.of_stack(site.stack).or_else(|| self.of_scope(site.scope))
    }

    fn of_stack(&mut self, stack: u32) -> Option<u32> {
        let code = self.code.as_deref().filter(|_| stack != 0)?;
        let number = self.stacks.intern(stack)? as usize;
        if number == self.by_stack.as_slice().len() {
            let kinds = site::frames(stack).map(|frame| code.kind_of(frame));
            let mut caller = kinds.skip_while(|kind| *kind == CodeKind::Library);
            let found = match caller.next() {
                Some(CodeKind::Reported(reporter)) => reporter + 1,
                _ => 0,
            };
            self.by_stack.push(found);
        }
        self.by_stack.as_slice().get(number)?.checked_sub(1)
    }

    fn of_scope(&self, mut scope: u16) -> Option<u32> {
        while scope != 0 && !self.scopes.is_empty() {
            let (parent, name) = scope_link(scope);
            let found = self.scopes.iter().find(|(wanted, _)| *wanted == name);
            if let Some((_, reporter)) = found {
                return Some(*reporter);
            }
            scope = parent;
        }
        None
    }

    /// Returns the reporter with this number.
    pub(super) fn reporter(&self, number: u32) -> Option<&'static OriginReporter> {
        self.reporters.get(number as usize).copied()
    }

    /// Returns the number of reporters.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.reporters.len()).unwrap_or(u32::MAX)
    }

    /// Returns why reports are missing or too small, in sentences.
    pub(super) fn notes(&self, WholePlan { hooks, probability, .. }: WholePlan) -> Vec<String> {
        let mut notes = Vec::new();
        let paths = |of_crates: bool| {
            let is_of = |reporter: &&&OriginReporter| {
                !of_crates || matches!(reporter.origin(), Origin::Crates(_))
            };
            let of_kind = self.reporters.iter().filter(is_of);
            let mut paths: Vec<_> = of_kind.map(|reporter| reporter.path()).collect();
            paths.dedup();
            paths.join(", ")
        };
        if self.reporters.is_empty() {
            return notes;
        }
        if probability.is_some() {
            notes.push(format!(
                "a profile has a sample of the blocks: no report of {}",
                paths(false)
            ));
        } else if self.code.is_some() && (!hooks.has_stacks() || hooks.has_partial_stacks()) {
            let share = if hooks.has_stacks() { "only some" } else { "no" };
            notes.push(format!(
                "blocks have a crate by their stacks, and DMD takes {share} stacks \
                 (--stacks=full takes all): {} lack blocks",
                paths(true)
            ));
        }
        if let Some(code) = &self.code {
            notes.extend(self.unknown_crates(code));
        }
        notes
    }

    /// Returns a sentence for each crate without a function in the symbols.
    fn unknown_crates(&self, code: &Code) -> impl Iterator<Item = String> {
        code.unknown().iter().filter_map(|(name, number)| {
            let path = self.reporter(*number)?.path();
            Some(format!(
                "{path}: no function of the crate {name} is in the symbols of the program: the \
                 name is wrong, all of its functions are inlined, or the file is stripped"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plan::whole_plan;
    use memreport::__private::current_scope;
    use memreport::enter_scope;

    memreport::reporter_of_scope!("explicit/origins/outer", "origins-outer");
    memreport::reporter_of_scope!("explicit/origins/inner", "origins-inner");

    #[test]
    fn the_innermost_scope_with_a_reporter_counts() {
        let origins = Origins::find(whole_plan());
        let path = |scope| Some(origins.reporter(origins.of_scope(scope)?)?.path());
        assert_eq!(path(current_scope()), None);
        let _apart = enter_scope("origins-apart");
        assert_eq!(path(current_scope()), None);
        let _outer = enter_scope("origins-outer");
        assert_eq!(path(current_scope()), Some("explicit/origins/outer"));
        let _within = enter_scope("origins-within");
        assert_eq!(path(current_scope()), Some("explicit/origins/outer"));
        let _inner = enter_scope("origins-inner");
        assert_eq!(path(current_scope()), Some("explicit/origins/inner"));
    }
}
