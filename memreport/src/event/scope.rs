//! Declares scopes of the program's work, such as a request. A block belongs to the scope in which
//! it is allocated, until it is freed.
#![expect(unsafe_code, reason = "a future inside another one is pinned with it")]

use std::borrow::Cow;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::{Context, Poll};

use super::attribution;
use super::scope_table::{is_inside, number};

/// Returns the number of the scope that this thread is in; 0 is none.
#[inline]
#[must_use]
pub fn current_scope() -> u16 {
    attribution::scope()
}

/// Makes this scope the current one of this thread. Returns the former one.
pub(crate) fn enter(scope: u16) -> u16 {
    attribution::replace_scope(scope)
}

/// Returns to the outer scope `before`. Does nothing if `scope` was left already, because an outer
/// one ended first.
#[inline]
pub(crate) fn leave(scope: u16, before: u16) {
    let current = current_scope();
    if current == scope || is_inside(current, scope) {
        enter(before);
    }
}

/// A guard that keeps its thread in a scope until it is dropped.
#[derive(Debug)]
#[must_use = "the scope ends when this is dropped"]
pub struct Scope {
    scope: u16,
    before: u16,
    /// A scope belongs to its thread.
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

/// Enters a scope: it owns the blocks that this thread allocates until the guard is dropped.
///
/// DMD records the scope of each block, so that a dump attributes memory to the program's work.
/// [`scope!`](crate::scope) is faster if the name is fixed.
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

/// A place in the source that enters a scope, with a cache of the scope's last number.
#[derive(Debug)]
pub struct ScopeCallsite {
    name: &'static str,
    /// The parent scope and the number of this scope, when it was last entered.
    last: AtomicU32,
}

impl ScopeCallsite {
    /// Creates the call site of a scope with this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        ScopeCallsite { name, last: AtomicU32::new(0) }
    }

    /// Enters the scope.
    #[inline]
    pub fn enter(&self) -> Scope {
        let parent = current_scope();
        // Acquire, with the Release of `find`: the link of the scope is there.
        let last = self.last.load(Acquire);
        let scope = if last != 0 && last >> 16 == u32::from(parent) {
            u16::try_from(last & 0xffff).unwrap_or(0)
        } else {
            self.find(parent)
        };
        Scope::enter(scope)
    }

    #[cold]
    fn find(&self, parent: u16) -> u16 {
        let scope = number(parent, Cow::Borrowed(self.name));
        self.last.store(u32::from(parent) << 16 | u32::from(scope), Release);
        scope
    }
}

/// Enters a scope with a fixed name until the end of the block: `memreport::scope!("parse");`.
/// Takes about three nanoseconds.
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
            static CALLSITE: $crate::__private::ScopeCallsite =
                $crate::__private::ScopeCallsite::new($name);
            CALLSITE.enter()
        };
    };
}

/// A future that is in a scope whenever it is polled, on any thread. Made by [`in_scope`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Scoped<F> {
    scope: u16,
    future: F,
}

/// Keeps a future in a scope across awaits. The parent is the scope that this thread is in now.
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
        // SAFETY: the inner future is never moved out of this one, which has no `Drop` and is
        // `Unpin` only if the inner one is.
        let future = unsafe { self.map_unchecked_mut(|scoped| &mut scoped.future) };
        future.poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::scope_table::path;

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
        // A call site that is reached from several scopes.
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
