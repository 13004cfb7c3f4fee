//! Flags for the resource of files.

use clap::Args;

use crate::resource::Resource;

/// Flags for the resource of files.
#[derive(Debug, Args)]
pub(crate) struct ResourceArgs {
    /// The service [default: that of `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES`, or else the
    /// program's name]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// The version of the service
    #[arg(long, value_name = "VERSION")]
    service_version: Option<String>,

    /// The host [default: this one]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// A further attribute of the resource, as `k8s.pod.name=shop-7`; repeat for several
    #[arg(long = "attribute", value_name = "KEY=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a `=` is missing: KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl ResourceArgs {
    /// Returns the attributes: of the environment, replaced by flags.
    pub(crate) fn resource(&self) -> Resource {
        let variable = |name| std::env::var(name).ok();
        let (list, name) = (variable("OTEL_RESOURCE_ATTRIBUTES"), variable("OTEL_SERVICE_NAME"));
        let mut resource = Resource::of_variables(list.as_deref(), name.as_deref());
        for (key, value) in &self.attributes {
            resource.set(key, value);
        }
        let flags = [
            ("service.name", &self.service),
            ("service.version", &self.service_version),
            ("host.name", &self.host),
        ];
        for (key, value) in flags {
            resource.set(key, value.as_deref().unwrap_or_default());
        }
        resource.set_default("host.name", &host_name());
        resource
    }
}

/// Returns the name of this host, or an empty text.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}
