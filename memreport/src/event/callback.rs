//! Defines the guard that unregisters a callback, and reads the message of a callback's panic.

/// A registered reporter, handler or hook. Dropping this unregisters it.
#[derive(Debug)]
#[must_use = "what was registered is taken off the list when this is dropped; `.forever()` keeps it"]
pub struct Registration {
    place: Option<(u64, fn(u64))>,
}

impl Registration {
    /// Creates the guard of a registered callback; `forget(id)` unregisters it.
    pub(crate) fn new(id: u64, forget: fn(u64)) -> Self {
        Registration { place: Some((id, forget)) }
    }

    /// Keeps the callback registered for the rest of the program.
    pub fn forever(mut self) {
        self.place = None;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some((id, forget)) = self.place {
            forget(id);
        }
    }
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
