//! The example service as a child process, which ends on drop.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::http;
use crate::build;
use crate::failure::Failure;

/// A running service.
#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    /// Host and port, such as `127.0.0.1:8080`.
    pub(crate) address: String,
}

/// Builds the service and returns its path.
pub(crate) fn build() -> Result<PathBuf, Failure> {
    build::debug("memreport-service-example", "service")
}

impl Service {
    /// Starts the service with this `$DMD`, on a port that the system chooses.
    pub(crate) fn start(program: &Path, variable: &str) -> Result<Self, Failure> {
        let mut child = Command::new(program)
            .arg("127.0.0.1:0")
            .env("DMD", variable)
            .env("OTEL_SERVICE_NAME", "pages")
            .env("OTEL_RESOURCE_ATTRIBUTES", "service.version=1.4.2,service.name=other")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("the service has no output")?;
        let mut service = Service { child, address: String::new() };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let address =
            line.trim().strip_prefix("http://").ok_or("the service ended at its start")?;
        address.clone_into(&mut service.address);
        Ok(service)
    }

    /// Returns the response to a request.
    pub(crate) fn get(&self, path: &str) -> Result<String, Failure> {
        http::get(&self.address, path)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
