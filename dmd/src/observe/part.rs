//! The part of a program that an observer is limited to.

use crate::stack::limits::Limit;

/// A part of a program: threads, scopes, or certain threads in certain scopes. By default all of
/// it.
///
/// Several threads, and several scopes, are alternatives. An allocation belongs to a crate by the
/// functions on its stack, which are known only after symbolication: filter the entries of the log
/// by [`Stack::functions`](super::Stack::functions), as `about-memory log --crate` does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Part {
    thread_names: Vec<String>,
    thread_ids: Vec<u32>,
    scopes: Vec<String>,
}

impl Part {
    /// Adds the threads of this name, of which the kernel keeps 15 bytes.
    ///
    /// A thread reads its name when it allocates for the first time after the observer was limited,
    /// and again after each time that the log was drained.
    pub fn thread(mut self, name: impl Into<String>) -> Self {
        self.thread_names.push(name.into());
        self
    }

    /// Adds the thread with this number of the kernel.
    pub fn thread_id(mut self, id: u32) -> Self {
        self.thread_ids.push(id);
        self
    }

    /// Adds the scopes of this name, and what is inside them; see `memreport::scope!`.
    pub fn scope(mut self, name: impl Into<String>) -> Self {
        self.scopes.push(name.into());
        self
    }

    pub(super) fn limit(&self) -> Limit {
        let mut limit = Limit::default();
        self.thread_names.iter().for_each(|name| limit.add_thread_name(name));
        self.thread_ids.iter().for_each(|id| limit.add_thread(*id));
        self.scopes.iter().for_each(|name| limit.add_scope(name));
        limit
    }
}
