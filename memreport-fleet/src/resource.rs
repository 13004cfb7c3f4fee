//! The resource that memory belongs to, by OpenTelemetry's attributes.

use std::collections::BTreeMap;

use memreport_analysis::heap::resource_attributes;

/// The attributes of a service's process. What is unknown is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    attributes: BTreeMap<String, String>,
}

/// The text of a partition whose attribute is unknown.
pub const UNKNOWN: &str = "unknown";

impl Resource {
    /// Takes the attributes from the values of OpenTelemetry's two variables.
    ///
    /// `OTEL_RESOURCE_ATTRIBUTES` is a list `key=value,…` with percent-encoded values;
    /// `OTEL_SERVICE_NAME` has precedence. Defective entries are left out.
    #[must_use]
    pub fn of_variables(attributes: Option<&str>, service: Option<&str>) -> Self {
        Resource { attributes: resource_attributes(attributes, service) }
    }

    /// Sets an attribute. An empty value changes nothing.
    pub fn set(&mut self, key: &str, value: &str) {
        if !value.is_empty() && !key.is_empty() {
            self.attributes.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Sets an attribute that is not there yet.
    pub fn set_default(&mut self, key: &str, value: &str) {
        if self.get(key).is_none() {
            self.set(key, value);
        }
    }

    /// Returns an attribute.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.attributes.get(key).map(String::as_str)
    }

    /// Returns all attributes, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attributes.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns `service.name`, `service.version` and `host.name`, each [`UNKNOWN`] if absent.
    #[must_use]
    pub fn partition(&self) -> [&str; 3] {
        ["service.name", "service.version", "host.name"].map(|key| self.get(key).unwrap_or(UNKNOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_opentelemetry_defines_them() {
        let list = "service.name=old, service.version=1.2%2C3 ,k8s.pod.name=a-1,broken,=x";
        let resource = Resource::of_variables(Some(list), Some("shop"));
        let found: Vec<_> = resource.iter().collect();
        let expected =
            [("k8s.pod.name", "a-1"), ("service.name", "shop"), ("service.version", "1.2,3")];
        assert_eq!(found, expected);
        assert_eq!(resource.partition(), ["shop", "1.2,3", UNKNOWN]);
        assert_eq!(Resource::of_variables(None, None), Resource::default());
        let odd = Resource::of_variables(Some("a=100%,b=%zz%41"), None);
        assert_eq!(odd.iter().collect::<Vec<_>>(), [("a", "100%"), ("b", "%zzA")]);
    }
}
