//! Pseudo stacks: what the program is at, in its own words. A block that is allocated in a scope belongs to it until it is given
//! back, wherever that is.
#![expect(unsafe_code, reason = "a future inside another one is pinned with it")]

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use super::on_alloc::as_own;

std::thread_local! {
    /// The innermost scope that this thread is in; 0 is none.
    static CURRENT: Cell<u16> = const { Cell::new(0) };
}

/// The scope that this thread is in; 0 is none.
#[inline]
#[must_use]
pub fn current_scope() -> u16 {
    CURRENT.try_with(Cell::get).unwrap_or(0)
}

/// Has this thread be in a scope; the one that it was in.
pub(crate) fn enter(scope: u16) -> u16 {
    CURRENT.try_with(|current| current.replace(scope)).unwrap_or(0)
}

/// Has this thread go back to the scope around one. If that was left already, as by one around it that ended first, nothing happens.
#[inline]
pub(crate) fn leave(scope: u16, before: u16) {
    let current = current_scope();
    if current == scope || is_inside(current, scope) {
        enter(before);
    }
}

#[cold]
fn is_inside(mut scope: u16, outer: u16) -> bool {
    let scopes = scopes();
    // What is inside another one got its number later.
    while scope > outer {
        let around = scopes.as_ref().and_then(|all| all.list.get(usize::from(scope) - 1));
        scope = around.map_or(0, |(around, _)| *around);
    }
    scope == outer
}

/// All scopes that were ever entered. A number is a name and the scope around it.
#[derive(Default)]
struct Scopes {
    numbers: HashMap<(u16, Cow<'static, str>), u16>,
    list: Vec<(u16, Cow<'static, str>)>,
}

static SCOPES: Mutex<Option<Scopes>> = Mutex::new(None);

fn scopes() -> MutexGuard<'static, Option<Scopes>> {
    // A scope is added under the lock, and nothing that panics.
    SCOPES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As many scopes have numbers of their own; all that come after them are `<other>`.
const MOST: usize = u16::MAX as usize - 1;

/// The number of the scope of this name inside another one.
pub(crate) fn number(around: u16, name: Cow<'static, str>) -> u16 {
    as_own(|| {
        let mut scopes = scopes();
        let scopes = scopes.get_or_insert_with(Scopes::default);
        if let Some(number) = scopes.numbers.get(&(around, name.clone())) {
            return *number;
        }
        if scopes.list.len() >= MOST {
            // The last number is that of all others.
            scopes.list.resize_with(MOST + 1, || (0, Cow::Borrowed("<other>")));
            return u16::MAX;
        }
        scopes.list.push((around, name.clone()));
        let next = u16::try_from(scopes.list.len()).unwrap_or(u16::MAX);
        scopes.numbers.insert((around, name), next);
        next
    })
}

/// Every scope with a number, from number 1 on: the number of the scope around it (0 is none), and its name.
#[must_use]
pub fn all_scopes() -> Vec<(u16, String)> {
    let scopes = scopes();
    let list = scopes.iter().flat_map(|scopes| &scopes.list);
    list.map(|(around, name)| (*around, name.clone().into_owned())).collect()
}

/// A scope that a thread is in until this is dropped.
#[derive(Debug)]
#[must_use = "the scope ends when this is dropped"]
pub struct Scope {
    scope: u16,
    before: u16,
    /// A scope is its thread's.
    _of_thread: PhantomData<*const ()>,
}

impl Scope {
    #[inline]
    fn enter(scope: u16) -> Self {
        Scope { scope, before: enter(scope), _of_thread: PhantomData }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        leave(self.scope, self.before);
    }
}

/// Enters a scope: what this thread allocates until the guard is dropped belongs to it. DMD notes it for each block, so that a
/// dump says which part of the program's work holds how much: [`scope!`](crate::scope) is quicker where the name is fixed.
///
/// ```
/// fn answer(request: &str) -> String {
///     let _scope = memreport::enter_scope(format!("request {}", &request[..1]));
///     request.to_uppercase()
/// }
/// assert_eq!(answer("abc"), "ABC");
/// ```
pub fn enter_scope(name: impl Into<Cow<'static, str>>) -> Scope {
    Scope::enter(number(current_scope(), name.into()))
}

/// A place in the source that enters a scope: it remembers the number that it had last.
#[derive(Debug)]
pub struct Entrance {
    name: &'static str,
    /// The scope around it, and its own number.
    last: AtomicU32,
}

impl Entrance {
    /// Of a scope of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Entrance { name, last: AtomicU32::new(0) }
    }

    /// Enters it.
    #[inline]
    pub fn enter(&self) -> Scope {
        let around = current_scope();
        let last = self.last.load(Relaxed);
        let scope = if last != 0 && last >> 16 == u32::from(around) {
            u16::try_from(last & 0xffff).unwrap_or(0)
        } else {
            self.find(around)
        };
        Scope::enter(scope)
    }

    #[cold]
    fn find(&self, around: u16) -> u16 {
        let scope = number(around, Cow::Borrowed(self.name));
        self.last.store(u32::from(around) << 16 | u32::from(scope), Relaxed);
        scope
    }
}

/// Enters a scope of a fixed name until the end of the block: `memreport::scope!("parse");`. About three nanoseconds.
///
/// ```
/// fn parse(text: &str) -> Vec<String> {
///     memreport::scope!("parse");
///     text.split(' ').map(String::from).collect()
/// }
/// assert_eq!(parse("a b").len(), 2);
/// ```
#[macro_export]
macro_rules! scope {
    ($name:literal) => {
        let _scope = {
            static ENTRANCE: $crate::__private::Entrance = $crate::__private::Entrance::new($name);
            ENTRANCE.enter()
        };
    };
}

/// A future that is in a scope whenever it is polled, on whichever thread. Made by [`in_scope`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Scoped<F> {
    scope: u16,
    future: F,
}

/// Keeps a scope across awaits: what `future` allocates belongs to it, inside the scope that this thread is in now.
///
/// ```
/// # fn spawn<F: std::future::Future>(_: F) {}
/// spawn(memreport::in_scope("search", async {
///     // … awaits, on any thread …
/// }));
/// ```
pub fn in_scope<F: Future>(name: impl Into<Cow<'static, str>>, future: F) -> Scoped<F> {
    Scoped { scope: number(current_scope(), name.into()), future }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _scope = Scope::enter(self.scope);
        // SAFETY: the future is never moved out of this one, which has no `Drop`, and is `Unpin` only where it is.
        let future = unsafe { self.map_unchecked_mut(|scoped| &mut scoped.future) };
        future.poll(context)
    }
}

/// The names of a scope and of those around it, for tests.
#[cfg(test)]
pub(crate) fn path(mut scope: u16) -> String {
    let all = all_scopes();
    let mut names = Vec::new();
    while let Some((around, name)) = usize::from(scope).checked_sub(1).and_then(|at| all.get(at)) {
        names.push(name.clone());
        scope = *around;
    }
    names.reverse();
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_end_with_their_guards() {
        assert_eq!(current_scope(), 0);
        let outer = enter_scope("outer");
        let number = current_scope();
        assert_eq!(path(number), "outer");
        for _ in 0..3 {
            scope!("inner");
            assert_eq!(path(current_scope()), "outer/inner");
        }
        assert_eq!(current_scope(), number);
        drop(outer);
        assert_eq!(current_scope(), 0);
        let again = enter_scope(String::from("outer"));
        assert_eq!(current_scope(), number, "the same scope has the same number");
        drop(again);
        // A place that is reached from several scopes.
        let reached = || {
            scope!("shared");
            path(current_scope())
        };
        assert_eq!(reached(), "shared");
        let _outer = enter_scope("outer");
        assert_eq!(reached(), "outer/shared");
    }

    #[test]
    fn scopes_that_end_in_another_order_leave_nothing_behind() {
        let (outer, inner) = (enter_scope("outer"), enter_scope("inner"));
        drop(outer);
        assert_eq!(current_scope(), 0);
        drop(inner);
        assert_eq!(current_scope(), 0);
    }

    #[test]
    fn a_future_keeps_its_scope_across_awaits_and_threads() {
        use std::task::Waker;
        let mut polls = 0;
        let future = std::future::poll_fn(move |_| {
            polls += 1;
            assert_eq!(path(current_scope()), "request/search");
            if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
        });
        let mut scoped = {
            scope!("request");
            Box::pin(in_scope("search", future))
        };
        let poll = move || {
            let ready = scoped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            (ready, scoped, current_scope())
        };
        let (ready, mut scoped, left) = poll();
        assert_eq!((ready, left), (false, 0));
        std::thread::spawn(move || {
            let mut context = Context::from_waker(Waker::noop());
            assert!(scoped.as_mut().poll(&mut context).is_pending());
            assert!(scoped.as_mut().poll(&mut context).is_ready());
            assert_eq!(current_scope(), 0);
        })
        .join()
        .unwrap();
    }
}
