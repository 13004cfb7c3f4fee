//! The layout of a dataset: the paths of its files, and how they are written.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use memreport::__private::PrivateFile;

use crate::resource::Resource;
use crate::schema::{Table, VERSION};

/// The part of a dataset that a batch belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    service: String,
    version: String,
    /// The day in UTC, `2026-11-24`.
    date: String,
    host: String,
}

impl Partition {
    /// Returns the partition of a snapshot.
    #[must_use]
    pub fn new(resource: &Resource, time_ms: u64) -> Self {
        let [service, version, host] = resource.partition().map(str::to_owned);
        Partition { service, version, date: date(time_ms), host }
    }

    /// Returns the path of a file below the root of the dataset:
    /// `v1/reports/service=shop/version=1.2/date=2026-11-24/host=a/NAME.parquet`.
    ///
    /// Characters that engines, stores or shells treat specially are percent-encoded, as Hive does.
    #[must_use]
    pub fn path(&self, table: &Table, name: &str) -> String {
        let Partition { service, version, date, host } = self;
        let [service, version, host] = [service, version, host].map(|text| encoded(text));
        format!(
            "v{VERSION}/{}/service={service}/version={version}/date={date}/host={host}/{name}.parquet",
            table.name
        )
    }
}

/// A file that belongs into a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Its path below the dataset.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Returns the path of a file with symbols of a build.
#[must_use]
pub fn symbols_path(build_id: &str, name: &str) -> String {
    format!("v{VERSION}/symbols/build={}/{name}.parquet", encoded(build_id))
}

/// Returns the folder of a table, or of a service in it, below the root of the dataset.
#[must_use]
pub fn folder(table: &Table, service: Option<&str>) -> String {
    let service = service.map(|service| format!("/service={}", encoded(service)));
    format!("v{VERSION}/{}{}", table.name, service.unwrap_or_default())
}

/// Returns the day of a file, by its path; `None` for files without one.
#[must_use]
pub fn day_of(path: &str) -> Option<&str> {
    path.split('/').find_map(|part| part.strip_prefix("date="))
}

/// Percent-encodes a value of a partition.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    // A folder of this name would be another one.
    match encoded.as_str() {
        "." | ".." => encoded.replace('.', "%2E"),
        _ => encoded,
    }
}

/// Returns the day of a time in UTC.
fn date(time_ms: u64) -> String {
    // The civil calendar, counted in eras of 400 years that begin on 1 March.
    let days = time_ms / 86_400_000 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Writes a private file under a random name, renames it into place, and returns it.
///
/// # Errors
///
/// It cannot be written. The message has the path.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(named)?;
    }
    let mut file = PrivateFile::create(path).map_err(named)?;
    file.write_all(bytes).map_err(named)?;
    file.keep().map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::REPORTS;

    #[test]
    fn days_are_those_of_the_calendar() {
        let day = 86_400_000;
        let table = [
            (0, "1970-01-01"),
            (day - 1, "1970-01-01"),
            (59 * day, "1970-03-01"),
            (951_782_400_000, "2000-02-29"),
            (1_709_164_800_000, "2024-02-29"),
            (1_735_689_599_999, "2024-12-31"),
            (4_107_542_400_000, "2100-03-01"),
        ];
        for (time, expected) in table {
            assert_eq!(date(time), expected, "{time}");
        }
    }

    #[test]
    fn no_value_leaves_its_folder() {
        let mut resource = Resource::default();
        resource.set("service.name", "../a b=é");
        resource.set("service.version", "..");
        let path = Partition::new(&resource, 0).path(&REPORTS, "x");
        let expected = "v1/reports/service=..%2Fa%20b%3D%C3%A9/version=%2E%2E/date=1970-01-01/\
                        host=unknown/x.parquet";
        assert_eq!(path, expected);
    }
}
