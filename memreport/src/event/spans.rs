//! Makes scopes of the spans of the crate `tracing`, on every thread that enters them.

use std::cell::{Cell, RefCell};

use tracing_core::Subscriber;
use tracing_core::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::on_alloc::as_own;
use super::scope::{current_scope, enter, leave};
use super::scope_table::{SpanIds, linked_number, number, plain_number};

/// A layer for `tracing_subscriber` that makes a scope of each span.
///
/// The scope has the span's name, and the span or scope around it as parent. A future that is
/// instrumented with a span keeps the scope across awaits. Spans that this layer's filter rejects
/// are no scopes: their blocks belong to the scope around them.
///
/// ```
/// use tracing::Instrument;
/// use tracing_subscriber::layer::SubscriberExt;
/// use tracing_subscriber::util::SubscriberInitExt;
///
/// tracing_subscriber::registry().with(memreport::ScopeLayer::default()).init();
///
/// let parse = tracing::info_span!("parse");
/// let words = parse.in_scope(|| "a b".split(' ').map(String::from).collect::<Vec<_>>());
/// # let spawn = |_| ();
/// spawn(async move { words.len() }.instrument(tracing::info_span!("count")));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ScopeLayer {
    ids: Option<fn(&Id) -> Option<SpanIds>>,
}

impl ScopeLayer {
    /// Links scopes to spans of traces, so that a dump states the trace and the span of blocks.
    ///
    /// `ids` is called when a span is entered for the first time, and returns its identifiers, or
    /// `None` if it is in no trace or not sampled. The span is the current one then. The layer that
    /// makes the identifiers, such as `tracing-opentelemetry`'s, must be added before this one:
    ///
    /// ```ignore
    /// use opentelemetry::trace::TraceContextExt;
    /// use tracing_opentelemetry::OpenTelemetrySpanExt;
    ///
    /// fn ids(_: &tracing::span::Id) -> Option<memreport::SpanIds> {
    ///     let context = tracing::Span::current().context();
    ///     let span = context.span().span_context().clone();
    ///     let [trace, id] = [span.trace_id().to_bytes(), span.span_id().to_bytes()];
    ///     span.is_sampled().then_some(memreport::SpanIds { trace, span: id })
    /// }
    /// registry().with(telemetry).with(ScopeLayer::default().with_span_ids(ids)).init();
    /// ```
    ///
    /// A scope within a span has the link of the span. Each span with a link takes one of 32,768
    /// numbers. When 1,024 are used, every second trace gets links, after as many more every
    /// fourth, and so on; all spans of such a trace do. Blocks of other traces have their scope
    /// alone.
    #[must_use]
    pub fn with_span_ids(mut self, ids: fn(&Id) -> Option<SpanIds>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Returns the scope of a span that is entered, and links it the first time.
    fn scope_of_entered<'span, S>(&self, id: &Id, span: &SpanRef<'span, S>) -> Option<u16>
    where
        S: LookupSpan<'span>,
    {
        let scope = span.extensions().get::<ScopeOf>().copied()?;
        let (Some(ids), Some(parent)) = (self.ids, scope.unlinked_in) else {
            return Some(scope.number);
        };
        // No lock is held: the function may look at the span.
        let number = match ids(id) {
            Some(ids) => linked_number(parent, scope.number, ids),
            None => number_of(parent, span.metadata().name()),
        };
        as_own(|| span.extensions_mut().replace(ScopeOf { number, unlinked_in: None }));
        Some(number)
    }
}

/// The scope of a span, stored with the span.
#[derive(Clone, Copy)]
struct ScopeOf {
    number: u16,
    /// The scope around it, until the span is entered for the first time, if links are wanted.
    unlinked_in: Option<u16>,
}

impl<S> Layer<S> for ScopeLayer
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = if attributes.is_contextual() {
            // Not the scope of the span around it: another scope may have been entered within that.
            current_scope()
        } else {
            // A number includes its parents.
            let above = span.scope().skip(1);
            above.into_iter().find_map(|above| scope_of(&above)).unwrap_or(0)
        };
        let name = attributes.metadata().name();
        let scope = match self.ids {
            Some(_) => ScopeOf { number: plain_number(parent, name), unlinked_in: Some(parent) },
            None => ScopeOf { number: number_of(parent, name), unlinked_in: None },
        };
        as_own(|| span.extensions_mut().replace(scope));
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let span = context.span(id);
        if let Some(scope) = span.and_then(|span| self.scope_of_entered(id, &span)) {
            push(id.into_u64(), scope);
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        pop(id.into_u64());
    }
}

fn scope_of<'span, S: LookupSpan<'span>>(span: &SpanRef<'span, S>) -> Option<u16> {
    span.extensions().get().map(|scope: &ScopeOf| scope.number)
}

/// A span that a thread has entered.
struct Entered {
    span: u64,
    scope: u16,
    /// The scope to return to.
    before: u16,
}

std::thread_local! {
    /// The spans that this thread has entered, outermost first. At a thread's end it is dropped
    /// before other values. Spans that these enter are no scopes.
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

fn push(span: u64, scope: u16) {
    let _ = ENTERED.try_with(|entered| {
        let before = enter(scope);
        as_own(|| entered.borrow_mut().push(Entered { span, scope, before }));
    });
}

/// Leaves a span, also one that ends before spans entered within it.
fn pop(span: u64) {
    let _ = ENTERED.try_with(|entered| {
        let mut entered = entered.borrow_mut();
        let Some(place) = entered.iter().rposition(|entered| entered.span == span) else { return };
        let Entered { scope, before, .. } = entered.remove(place);
        match entered.get_mut(place) {
            // The span within it returns to the scope that this one would have returned to.
            Some(within) => within.before = before,
            None => leave(scope, before),
        }
    });
}

/// The number of scope numbers that a thread caches.
const CACHE_SIZE: usize = 32;

/// The parent scope, the name, and the number; 0 is an empty entry.
type CachedNumber = (u16, &'static str, u16);

std::thread_local! {
    static CACHE: [Cell<CachedNumber>; CACHE_SIZE] = const { [const { Cell::new((0, "", 0)) }; CACHE_SIZE] };
}

/// Returns the number of a scope whose name is static. The last few need no lock.
fn number_of(parent: u16, name: &'static str) -> u16 {
    // Names lie a few bytes apart.
    let place = (name.as_ptr() as usize >> 2).wrapping_add(usize::from(parent)) % CACHE_SIZE;
    let cached = CACHE.try_with(|cached| cached[place].get()).unwrap_or((0, "", 0));
    if cached.2 != 0 && cached.0 == parent && std::ptr::eq(cached.1, name) {
        return cached.2;
    }
    let number = number(parent, name.into());
    let _ = CACHE.try_with(|cached| cached[place].set((parent, name, number)));
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::scope_table::{all_span_ids, path};
    use tracing::{Instrument, Span, info_span};
    use tracing_subscriber::Registry;
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt;

    fn now() -> String {
        path(current_scope())
    }

    /// Runs `work` with a layer of its own, and checks that no scope remains.
    fn layered(work: impl FnOnce()) {
        let layer = ScopeLayer::default().with_filter(filter_fn(|span| span.name() != "hidden"));
        tracing::subscriber::with_default(Registry::default().with(layer), work);
        assert_eq!(current_scope(), 0);
    }

    #[test]
    fn spans_are_scopes_among_scopes() {
        layered(|| {
            let request = info_span!("request").entered();
            assert_eq!(now(), "request");
            {
                crate::scope!("parse");
                let word = info_span!("word").entered();
                assert_eq!(now(), "request/parse/word");
                // Created here, entered elsewhere.
                let elsewhere = info_span!("elsewhere");
                let hidden = info_span!("hidden").entered();
                assert_eq!(now(), "request/parse/word");
                drop((hidden, word));
                assert_eq!(now(), "request/parse");
                elsewhere.in_scope(|| assert_eq!(now(), "request/parse/word/elsewhere"));
            }
            let of_request = info_span!(parent: &*request, "of_request");
            let root = info_span!(parent: None, "root");
            assert_eq!(now(), "request");
            drop(request);
            of_request.in_scope(|| assert_eq!(now(), "request/of_request"));
            root.in_scope(|| assert_eq!(now(), "root"));
        });
    }

    /// Returns the span that the current scope is linked to.
    fn link() -> Option<SpanIds> {
        let (scopes, links) = (crate::event::scope_table::all_scopes(), all_span_ids());
        let mut scope = current_scope();
        while scope != 0 {
            if let Some((_, ids)) = links.iter().find(|(linked, _)| *linked == scope) {
                return Some(*ids);
            }
            scope = scopes[usize::from(scope) - 1].0;
        }
        None
    }

    #[test]
    fn scopes_are_linked_to_spans_from_their_first_entry() {
        /// Spans whose name ends in `plain` are in no trace.
        fn ids(id: &Id) -> Option<SpanIds> {
            let is_plain = Span::current().metadata()?.name().ends_with("plain");
            (!is_plain).then(|| SpanIds { trace: [7; 16], span: id.into_u64().to_be_bytes() })
        }
        let expected = |span: &Span| ids(&span.id().expect("it is enabled"));
        let layer = ScopeLayer::default().with_span_ids(ids);
        tracing::subscriber::with_default(Registry::default().with(layer), || {
            let [first, second] = [(); 2].map(|()| info_span!("request"));
            for span in [&first, &second, &first] {
                let _entered = span.enter();
                let of_span = expected(span);
                assert_eq!((now().as_str(), link()), ("request", of_span));
                crate::scope!("parse");
                assert_eq!((now().as_str(), link()), ("request/parse", of_span));
                let inner = info_span!("inner");
                let of_inner = inner.in_scope(|| expected(&inner));
                inner.in_scope(|| assert_eq!(link(), of_inner));
                assert_ne!(link(), of_inner);
                info_span!("in_plain").in_scope(|| {
                    assert_eq!(now(), "request/parse/in_plain");
                    assert_eq!(link(), of_span, "the link of the span around it");
                });
            }
            info_span!("plain").in_scope(|| assert_eq!((now().as_str(), link()), ("plain", None)));
            let scope = {
                let _entered = second.enter();
                crate::enter_scope("late")
            };
            assert_eq!(current_scope(), 0, "the span that ended has ended what is within it");
            drop(scope);
        });
    }

    #[test]
    fn spans_end_in_any_order() {
        layered(|| {
            let [one, two, three] = [info_span!("one"), info_span!("two"), info_span!("three")];
            let (first, second, third) = (one.enter(), two.enter(), three.enter());
            drop(second);
            assert_eq!(now(), "three");
            drop(third);
            assert_eq!(now(), "one");
            let again = one.enter();
            drop(first);
            assert_eq!(now(), "one", "it was entered twice");
            let third = three.enter();
            drop(again);
            assert_eq!(now(), "three");
            drop(third);
            assert_eq!(now(), "");
            // The guard of a scope that outlives its span.
            let span = one.enter();
            let scope = crate::enter_scope("late");
            drop(span);
            assert_eq!(now(), "");
            drop(scope);
            assert_eq!(now(), "");
        });
    }

    #[test]
    fn a_span_is_a_scope_on_every_thread_that_it_is_entered_on() {
        layered(|| {
            let span = info_span!("everywhere");
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            let entered = span.enter();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        tracing::dispatcher::with_default(&dispatch, || {
                            assert_eq!(now(), "");
                            span.in_scope(|| assert_eq!(now(), "everywhere"));
                            assert_eq!(now(), "");
                        });
                    });
                }
            });
            assert_eq!(now(), "everywhere");
            drop(entered);
        });
    }

    #[test]
    fn a_future_keeps_the_scope_of_its_span() {
        use std::future::{Future, poll_fn};
        use std::pin::pin;
        use std::task::{Context, Poll, Waker};
        layered(|| {
            let mut polls = 0;
            let inner = poll_fn(|_| {
                polls += 1;
                assert_eq!(now(), "request/search");
                if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
            });
            let outer = async { inner.instrument(info_span!("search")).await };
            let mut future = pin!(outer.instrument(info_span!("request")));
            let mut context = Context::from_waker(Waker::noop());
            while future.as_mut().poll(&mut context).is_pending() {
                assert_eq!(now(), "");
            }
            assert_eq!(Span::current().id(), None);
        });
    }
}
