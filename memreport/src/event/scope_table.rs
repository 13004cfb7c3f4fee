//! The numbers of scopes: each stands for a name and the scope around it, and may be linked to a
//! span of a trace.
//!
//! Numbers are never used again, because blocks keep them. A program has more spans than there are
//! numbers, so linked scopes get half of them, and ever fewer traces are chosen for the rest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::on_alloc::as_own;

/// The identifiers of a span in a trace, as W3C's Trace Context and OpenTelemetry have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanIds {
    /// The identifier of the trace.
    pub trace: [u8; 16],
    /// The identifier of the span.
    pub span: [u8; 8],
}

/// A scope with a number.
struct Numbered {
    /// The scope around it; 0 is none.
    parent: u16,
    name: Cow<'static, str>,
    /// The scope with these names that is neither linked nor within a linked one.
    plain: u16,
    /// The span that it is linked to.
    ids: Option<SpanIds>,
}

/// All scopes ever entered. A number stands for a name and a parent scope.
#[derive(Default)]
struct Scopes {
    numbers: HashMap<(u16, Cow<'static, str>), u16>,
    list: Vec<Numbered>,
    links: Links,
    /// The numbers of names, from 1.
    names: HashMap<Cow<'static, str>, u16>,
    /// The linked scopes, by the scopes around them and the spans.
    #[cfg(any(feature = "tracing", test))]
    linked: HashMap<(u16, SpanIds), u16>,
    /// The number of scopes that are linked or within linked ones.
    linked_count: usize,
    /// The number of traces so far that were chosen for links, or not.
    #[cfg(any(feature = "tracing", test))]
    traces: u64,
}

impl Scopes {
    fn get(&self, scope: u16) -> Option<&Numbered> {
        self.list.get(usize::from(scope).checked_sub(1)?)
    }

    /// Returns the scope with the same names that is not linked.
    fn plain(&self, scope: u16) -> u16 {
        self.get(scope).map_or(scope, |numbered| numbered.plain)
    }

    /// Returns the number of a name; 0 if there are too many.
    fn name_number(&mut self, name: Cow<'static, str>) -> u16 {
        let next = u16::try_from(self.names.len() + 1).unwrap_or(0);
        match self.names.get(&name) {
            Some(number) => *number,
            None if next == 0 => 0,
            None => *self.names.entry(name).or_insert(next),
        }
    }

    /// Returns the number of the scope with this name and this parent.
    fn number(&mut self, parent: u16, name: Cow<'static, str>) -> u16 {
        if let Some(number) = self.numbers.get(&(parent, name.clone())) {
            return *number;
        }
        let plain_parent = self.plain(parent);
        let plain = (plain_parent != parent).then(|| self.number(plain_parent, name.clone()));
        match plain {
            Some(plain) if self.linked_count >= MAX_LINKED => return plain,
            Some(_) => self.linked_count += 1,
            None => {}
        }
        let number = self.push(parent, name.clone(), plain, None);
        self.numbers.insert((parent, name), number);
        number
    }

    /// Returns the number of a scope that is linked to a span. `plain` has the same names; it is
    /// returned if the span gets no link.
    #[cfg(any(feature = "tracing", test))]
    fn linked(&mut self, parent: u16, plain: u16, ids: SpanIds) -> u16 {
        if let Some(number) = self.linked.get(&(parent, ids)) {
            return *number;
        }
        let Some(name) = self.get(plain).map(|plain| plain.name.clone()) else { return plain };
        let is_chosen = self.trace(parent) == Some(ids.trace) || self.chooses_trace();
        if !is_chosen || self.linked_count >= MAX_LINKED {
            return plain;
        }
        self.linked_count += 1;
        let number = self.push(parent, name, Some(plain), Some(ids));
        self.linked.insert((parent, ids), number);
        number
    }

    /// Returns the trace of the innermost link of a scope and those around it.
    #[cfg(any(feature = "tracing", test))]
    fn trace(&self, mut scope: u16) -> Option<[u8; 16]> {
        while let Some(numbered) = self.get(scope) {
            if let Some(ids) = numbered.ids {
                return Some(ids.trace);
            }
            scope = numbered.parent;
        }
        None
    }

    /// Returns whether one more trace gets links: one in 2ⁿ when n steps of the numbers are used.
    #[cfg(any(feature = "tracing", test))]
    fn chooses_trace(&mut self) -> bool {
        let step = self.linked_count / (MAX_LINKED / LINK_STEPS);
        let is_chosen = self.traces % (1 << step) == 0;
        self.traces += 1;
        is_chosen
    }

    /// Adds a scope. One without a number of its own gets the last number, `<other>`.
    fn push(
        &mut self,
        parent: u16,
        name: Cow<'static, str>,
        plain: Option<u16>,
        ids: Option<SpanIds>,
    ) -> u16 {
        if self.list.len() >= MAX_SCOPES {
            self.list.resize_with(MAX_SCOPES + 1, || Numbered {
                parent: 0,
                name: Cow::Borrowed("<other>"),
                plain: u16::MAX,
                ids: None,
            });
            return u16::MAX;
        }
        let next = u16::try_from(self.list.len() + 1).unwrap_or(u16::MAX);
        let link = u32::from(parent) << 16 | u32::from(self.name_number(name.clone()));
        self.links.0[usize::from(next)].store(link, Relaxed);
        self.list.push(Numbered { parent, name, plain: plain.unwrap_or(next), ids });
        next
    }
}

/// By the number of a scope: its parent in the upper half, and the number of its name. Hooks read
/// it without a lock.
static LINKS: [AtomicU32; MAX_SCOPES + 2] = [const { AtomicU32::new(0) }; MAX_SCOPES + 2];

/// The links that a table writes: those that hooks read, but for tables of tests.
struct Links(&'static [AtomicU32; MAX_SCOPES + 2]);

impl Default for Links {
    fn default() -> Self {
        Links(&LINKS)
    }
}

static SCOPES: Mutex<Option<Scopes>> = Mutex::new(None);

fn scopes() -> MutexGuard<'static, Option<Scopes>> {
    // Adding a scope is all that happens under the lock, and cannot panic.
    SCOPES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most scopes with numbers of their own. Further ones are all `<other>`.
const MAX_SCOPES: usize = u16::MAX as usize - 1;

/// The most scopes that are linked to spans, or within scopes that are.
const MAX_LINKED: usize = 1 << 15;

/// The number of times that the share of traces with links is halved.
#[cfg(any(feature = "tracing", test))]
const LINK_STEPS: usize = 32;

/// Returns the number of the scope with this name and this parent.
pub(crate) fn number(parent: u16, name: Cow<'static, str>) -> u16 {
    as_own(|| scopes().get_or_insert_with(Scopes::default).number(parent, name))
}

/// Returns the number of the scope with this name and the parent's names, neither of them linked.
#[cfg(feature = "tracing")]
pub(crate) fn plain_number(parent: u16, name: &'static str) -> u16 {
    as_own(|| {
        let mut scopes = scopes();
        let scopes = scopes.get_or_insert_with(Scopes::default);
        let parent = scopes.plain(parent);
        scopes.number(parent, name.into())
    })
}

/// Returns the number of a scope within `parent` that is linked to a span, or `plain`, which has
/// its names, if the span gets no link.
#[cfg(feature = "tracing")]
pub(crate) fn linked_number(parent: u16, plain: u16, ids: SpanIds) -> u16 {
    as_own(|| scopes().get_or_insert_with(Scopes::default).linked(parent, plain, ids))
}

/// Returns whether a scope is this outer one, or is inside of it.
#[cold]
pub(crate) fn is_inside(mut scope: u16, outer: u16) -> bool {
    let scopes = scopes();
    let Some(scopes) = scopes.as_ref() else { return scope == outer };
    // When no numbers for links are left, scopes in a linked one are in its plain one.
    let plain = scopes.plain(outer);
    // An inner scope has a greater number than the scopes around it.
    while scope > plain && scope != outer {
        scope = scopes.get(scope).map_or(0, |numbered| numbered.parent);
    }
    scope == outer || scope == plain
}

/// Returns the parent of a scope and the number of its name; 0 is none.
#[inline]
#[must_use]
pub fn scope_link(scope: u16) -> (u16, u16) {
    let link = LINKS[usize::from(scope)].load(Relaxed).to_be_bytes();
    (u16::from_be_bytes([link[0], link[1]]), u16::from_be_bytes([link[2], link[3]]))
}

/// Returns the number of a scope's name, also of scopes that nothing has entered yet; 0 if there
/// are too many names.
#[must_use]
pub fn scope_name_number(name: &str) -> u16 {
    as_own(|| scopes().get_or_insert_with(Scopes::default).name_number(name.to_owned().into()))
}

/// Returns the parent's number (0 is none) and the name of every scope, in the order of numbers
/// from 1.
#[must_use]
pub fn all_scopes() -> Vec<(u16, String)> {
    list_of(scopes().as_ref())
}

/// Returns all scopes, or `None` while another thread adds one. A thread that others wait for must
/// not wait for the lock: they may hold it.
#[must_use]
pub fn try_all_scopes() -> Option<Vec<(u16, String)>> {
    SCOPES.try_lock().ok().map(|scopes| list_of(scopes.as_ref()))
}

/// Returns the linked scopes, by number, with their spans.
#[must_use]
pub fn all_span_ids() -> Vec<(u16, SpanIds)> {
    let scopes = scopes();
    let list = scopes.iter().flat_map(|scopes| &scopes.list).zip(1..);
    list.filter_map(|(numbered, number)| Some((number, numbered.ids?))).collect()
}

fn list_of(scopes: Option<&Scopes>) -> Vec<(u16, String)> {
    let list = scopes.into_iter().flat_map(|scopes| &scopes.list);
    list.map(|scope| (scope.parent, scope.name.clone().into_owned())).collect()
}

/// Returns the names of a scope and its parents, for tests.
#[cfg(test)]
pub(crate) fn path(mut scope: u16) -> String {
    let all = all_scopes();
    let mut names = Vec::new();
    while let Some((parent, name)) = usize::from(scope).checked_sub(1).and_then(|at| all.get(at)) {
        names.push(name.clone());
        scope = *parent;
    }
    names.reverse();
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enter_scope;
    use crate::event::scope::current_scope;

    /// Returns a table whose links no hook reads.
    fn apart() -> Scopes {
        let links = Box::new([const { AtomicU32::new(0) }; MAX_SCOPES + 2]);
        Scopes { links: Links(Box::leak(links)), ..Scopes::default() }
    }

    #[test]
    fn links_lead_from_a_scope_to_its_parents_names() {
        let wanted = scope_name_number("linked");
        let _outer = enter_scope("linked");
        let outer = current_scope();
        let _inner = enter_scope("inside");
        assert_eq!(scope_link(current_scope()), (outer, scope_name_number("inside")));
        assert_eq!(scope_link(outer), (0, wanted));
        assert_eq!(scope_link(0), (0, 0));
        assert_ne!(wanted, scope_name_number("inside"));
    }

    fn ids(trace: u64, span: u64) -> SpanIds {
        SpanIds { trace: u128::from(trace).to_be_bytes(), span: span.to_be_bytes() }
    }

    #[test]
    fn a_span_has_a_number_of_its_own_and_the_names_of_the_plain_scope() {
        let mut scopes = apart();
        let request = scopes.number(0, "request".into());
        let [one, two] = [1, 2].map(|trace| scopes.linked(0, request, ids(trace, 7)));
        assert!(one != two && one != request);
        assert_eq!(scopes.linked(0, request, ids(1, 7)), one, "the same span, the same number");
        let parse = scopes.number(one, "parse".into());
        assert_eq!(scopes.get(parse).map(|parse| parse.parent), Some(one));
        assert_eq!(scopes.plain(parse), scopes.number(request, "parse".into()));
        assert_eq!(scopes.trace(parse), Some(ids(1, 7).trace));
    }

    #[test]
    fn ever_fewer_traces_get_links_and_other_scopes_keep_their_numbers() {
        let mut scopes = apart();
        let plain = scopes.number(0, "request".into());
        let (mut first, mut last) = (0, 0);
        for trace in 0..200_000 {
            let number = scopes.linked(0, plain, ids(trace, 1));
            if number == plain {
                continue;
            }
            // A trace that was chosen is whole.
            let inner = scopes.number(plain, "inner".into());
            assert_ne!(scopes.linked(number, inner, ids(trace, 2)), inner);
            first += i32::from(trace < 512);
            last += i32::from(trace >= 199_488);
        }
        assert_eq!(first, 512, "a step is of 1,024 numbers");
        assert!(last > 0 && last < 10, "{last}");
        assert!(scopes.linked_count < MAX_LINKED / 3, "{}", scopes.linked_count);
        scopes.linked_count = MAX_LINKED;
        assert_eq!(scopes.linked(0, plain, ids(1 << 40, 1)), plain);
        let chosen = *scopes.linked.values().next().expect("there are some");
        let late = scopes.number(chosen, "late".into());
        let chosen_plain = scopes.plain(chosen);
        assert_eq!(late, scopes.number(chosen_plain, "late".into()), "it is not linked");
    }
}
