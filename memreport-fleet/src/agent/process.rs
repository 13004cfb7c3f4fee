//! The resource of a process of this host, by its environment.

use std::fs;

use crate::resource::Resource;

/// The most bytes of an environment that are read.
const MOST: u64 = 1 << 20;

/// Returns the attributes that a process states: OpenTelemetry's two variables. Empty if its
/// environment cannot be read.
pub(super) fn resource(pid: u32) -> Resource {
    use std::io::Read;
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) {
        // A process may end meanwhile.
        let _ = file.take(MOST).read_to_end(&mut bytes);
    }
    of_environment(&bytes)
}

/// Returns the attributes of an environment as the kernel shows it.
fn of_environment(bytes: &[u8]) -> Resource {
    let variable = |name: &str| {
        let entry = bytes
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        entry.and_then(|value| std::str::from_utf8(value).ok())
    };
    Resource::of_variables(variable("OTEL_RESOURCE_ATTRIBUTES"), variable("OTEL_SERVICE_NAME"))
}

/// Returns the clock ticks since boot at which a process was started. It tells two processes with
/// the same number apart.
pub(super) fn start(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses, and may contain some.
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_states_the_service() {
        let environment =
            b"PATH=/bin\0OTEL_SERVICE_NAME=shop\0OTEL_RESOURCE_ATTRIBUTES=service.version=7\0";
        assert_eq!(of_environment(environment).partition(), ["shop", "7", "unknown"]);
        assert_eq!(of_environment(b""), Resource::default());
        assert!(start(std::process::id()).is_some());
    }
}
