//! The layout of a dataset: the paths of its files, and how they are written.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

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
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| named(path, &error))?;
    }
    write_private(path, bytes).map_err(|error| named(path, &error))
}

/// Adds a private file to a dataset, in folders that only this user may enter, and returns it.
///
/// # Errors
///
/// It cannot be written. The message has the path.
pub fn add(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let added = create_folders(path.parent().unwrap_or(path)).and_then(|()| {
        let unfinished = unfinished(path);
        let file = write_private(&unfinished, bytes)?;
        let renamed = fs::rename(&unfinished, path);
        if renamed.is_err() {
            // The reason is the first error.
            let _ = fs::remove_file(&unfinished);
        }
        renamed.map(|()| file)
    });
    added.map_err(|error| named(path, &error))
}

/// Returns the name of a file of a dataset until it is complete. Engines read every file whose name
/// ends in `.parquet`.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}

/// Creates a folder, and those above it, for this user alone. Folders that exist are left as they
/// are.
///
/// # Errors
///
/// One cannot be created.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = PrivateFile::create(path)?;
    file.write_all(bytes)?;
    file.keep()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::REPORTS;
    use std::os::unix::fs::PermissionsExt;

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

    #[test]
    fn a_file_of_a_dataset_is_private_and_replaces_an_older_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("v1/reports/x.parquet");
        for text in ["one", "two"] {
            add(&path, text.as_bytes()).expect("there is space");
            assert_eq!(fs::read(&path).expect("it is there"), text.as_bytes());
        }
        let mode =
            |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        let above: Vec<u32> = path.ancestors().skip(1).take(2).map(mode).collect();
        assert_eq!(above, [0o700, 0o700]);
        let names = fs::read_dir(path.parent().expect("a folder")).expect("it is there");
        assert_eq!(names.count(), 1, "nothing incomplete is left");
    }

    #[test]
    fn an_incomplete_file_of_a_dataset_is_read_by_no_engine_and_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.parquet");
        assert!(!unfinished(&path).to_string_lossy().ends_with(".parquet"));
        fs::create_dir(&path).expect("there is space");
        add(&path, b"new").expect_err("a folder has the name");
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
    }
}
