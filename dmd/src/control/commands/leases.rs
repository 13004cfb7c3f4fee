//! Values that clients of the socket hold, each with a lease that its requests renew.
//!
//! A client that was killed renews nothing, so that its value is dropped with the lease.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use memreport::__private::as_own;
use memreport::serve::Request;

use crate::stack::thread::mark_own;

/// The values of one command.
pub(super) struct Leases<T: 'static> {
    /// The time after which a value without requests is dropped.
    length: Duration,
    /// The name of the thread that drops values.
    thread: &'static str,
    values: Mutex<Values<T>>,
}

struct Values<T> {
    next: u64,
    list: Vec<Held<T>>,
}

struct Held<T> {
    number: u64,
    value: T,
    end: Instant,
}

/// The sentence for a request without a valid number.
const UNKNOWN_NUMBER: &str = "nothing has this number, or its lease has ended; begin anew";

impl<T: Send> Leases<T> {
    pub(super) const fn new(length: Duration, thread: &'static str) -> Self {
        Leases { length, thread, values: Mutex::new(Values { next: 1, list: Vec::new() }) }
    }

    /// Returns the time after which a value without requests is dropped.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// Holds a new value. Returns its number.
    ///
    /// # Errors
    ///
    /// The thread that drops values cannot be started. The value is dropped then.
    pub(super) fn hold(&'static self, value: T) -> Result<u64, String> {
        let mut values = self.lock();
        let number = values.next;
        values.next += 1;
        let is_first = values.list.is_empty();
        values.list.push(Held { number, value, end: Instant::now() + self.length });
        drop(values);
        if is_first {
            let watch = thread::Builder::new().name(self.thread.into()).stack_size(128 * 1024);
            let spawned = watch.spawn(|| {
                mark_own();
                as_own(|| self.watch());
            });
            if let Err(error) = spawned {
                drop(self.take(number));
                return Err(format!("no thread could be started: {error}"));
            }
        }
        Ok(number)
    }

    /// Renews the lease that the request names, and calls `with` with its value.
    ///
    /// # Errors
    ///
    /// There is no such lease.
    pub(super) fn renew<R>(
        &self,
        request: &Request,
        with: impl FnOnce(&mut T) -> R,
    ) -> Result<R, String> {
        let number = number(request)?;
        let mut values = self.lock();
        let held = values.list.iter_mut().find(|held| held.number == number);
        let held = held.ok_or(UNKNOWN_NUMBER)?;
        held.end = Instant::now() + self.length;
        Ok(with(&mut held.value))
    }

    /// Ends the lease that the request names. Returns its value.
    ///
    /// # Errors
    ///
    /// There is no such lease.
    pub(super) fn end(&self, request: &Request) -> Result<T, String> {
        self.take(number(request)?).ok_or_else(|| UNKNOWN_NUMBER.to_owned())
    }

    /// Ends all leases. Returns their values.
    pub(super) fn end_all(&self) -> Vec<T> {
        self.lock().list.drain(..).map(|held| held.value).collect()
    }

    fn take(&self, number: u64) -> Option<T> {
        let mut values = self.lock();
        let index = values.list.iter().position(|held| held.number == number)?;
        Some(values.list.swap_remove(index).value)
    }

    fn lock(&self) -> MutexGuard<'_, Values<T>> {
        // No code panics under the lock.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the values whose leases have ended, until there are none.
    fn watch(&self) {
        loop {
            let mut values = self.lock();
            let now = Instant::now();
            let ended: Vec<_> = values.list.extract_if(.., |held| held.end <= now).collect();
            let next = values.list.iter().map(|held| held.end).min();
            drop(values);
            // Without the lock: the end of a recording takes time.
            drop(ended);
            let Some(next) = next else { return };
            thread::sleep(next.saturating_duration_since(now));
        }
    }
}

/// Returns the number in a request.
fn number(request: &Request) -> Result<u64, String> {
    let number = request.get("number").and_then(|number| number.parse().ok());
    number.ok_or_else(|| UNKNOWN_NUMBER.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_value_lives_as_long_as_its_lease() {
        static LEASES: Leases<Arc<()>> = Leases::new(Duration::from_millis(200), "test-leases");
        let value = Arc::new(());
        let first = LEASES.hold(Arc::clone(&value)).expect("a thread starts");
        let second = LEASES.hold(Arc::clone(&value)).expect("a thread starts");
        let named = |number: u64| Request::new("test").with("number", number.to_string());
        assert!(LEASES.renew(&named(first), |_| ()).is_ok());
        assert!(LEASES.end(&named(second)).is_ok());
        assert_eq!(LEASES.end(&named(second)).err().as_deref(), Some(UNKNOWN_NUMBER));
        assert_eq!(
            LEASES.renew(&Request::new("test"), |_| ()).err().as_deref(),
            Some(UNKNOWN_NUMBER)
        );
        while Arc::strong_count(&value) > 1 {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(LEASES.renew(&named(first), |_| ()).is_err());
        // A later value has a watching thread again.
        LEASES.hold(Arc::clone(&value)).expect("a thread starts");
        while Arc::strong_count(&value) > 1 {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
