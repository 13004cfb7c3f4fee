//! The object store that files go to and come from, by its address.
//!
//! Credentials are found by the standard means of each store: environment variables, files of
//! profiles, and the services of cloud machines.

mod cloud;
mod local;

pub use local::add;

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, PutPayload};

/// The time that one attempt to read or write a file may take.
const ATTEMPT: Duration = Duration::from_secs(60);

/// A store, and the folder in it that has the dataset.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    /// The same store, if it is a folder of this machine.
    local: Option<Arc<LocalFileSystem>>,
    prefix: Path,
}

/// A file of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its path below the dataset.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// The time when it was written.
    pub written: SystemTime,
}

/// The reason why a store cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The address has another form.
    Address(String),
    /// The address is no server's.
    Server(String),
    /// The store refused, or cannot be reached.
    Store(object_store::Error),
    /// A local folder or file cannot be created or written.
    Folder(io::Error),
    /// The attempt took too long.
    TooSlow,
    /// A file has more bytes than may be read.
    TooLarge(u64),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Address(address) => write!(
                f,
                "{address} is no address of a store; they are file:///…, s3://…, gs://… and az://…\
                 {}",
                if cfg!(feature = "cloud") { "" } else { " (this build has file:/// alone)" }
            ),
            StoreError::Server(address) if cfg!(feature = "cloud") => {
                write!(f, "{address} is no address of a server; they are http://… and https://…")
            }
            StoreError::Server(address) => write!(
                f,
                "{address} cannot be asked: this build has no HTTP client, which the feature \
                 `cloud` adds"
            ),
            StoreError::Store(error) => error.fmt(f),
            StoreError::Folder(error) => error.fmt(f),
            StoreError::TooSlow => write!(f, "the store did not answer within {ATTEMPT:?}"),
            StoreError::TooLarge(bytes) => {
                write!(f, "a file of {bytes} bytes is larger than what is read")
            }
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Store(error) => error.source(),
            _ => None,
        }
    }
}

impl StoreError {
    /// Returns whether the store has no such file.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, StoreError::Store(object_store::Error::NotFound { .. }))
    }
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        StoreError::Store(error)
    }
}

impl Store {
    /// Opens the store at an address: `file:///data`, `s3://bucket/folder`, `gs://…`, `az://…`.
    ///
    /// # Errors
    ///
    /// The address is none, or the store's settings are incomplete.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        let no_address = || StoreError::Address(address.to_owned());
        let (scheme, rest) = address.split_once("://").ok_or_else(no_address)?;
        if scheme == "file" {
            let folder = std::path::Path::new(rest);
            if !folder.is_absolute() {
                return Err(no_address());
            }
            local::create_folders(folder).map_err(|error| {
                let message = format!("{}: {error}", folder.display());
                StoreError::Folder(io::Error::new(error.kind(), message))
            })?;
            let local = LocalFileSystem::new_with_prefix(folder)?.with_automatic_cleanup(false);
            let local = Arc::new(local);
            let inner = Arc::clone(&local) as Arc<dyn ObjectStore>;
            return Ok(Store { inner, local: Some(local), prefix: Path::default() });
        }
        let (_, folder) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Path::parse(folder.trim_end_matches('/')).map_err(|_| no_address())?;
        let inner = cloud::open(scheme, address)?.ok_or_else(no_address)?;
        Ok(Store { inner, local: None, prefix })
    }

    /// Opens a server of files at `http://…` or `https://…`, which can be read.
    ///
    /// # Errors
    ///
    /// The address is none, or this build has no HTTP client.
    pub fn open_http(address: &str) -> Result<Self, StoreError> {
        Ok(Store { inner: cloud::open_http(address)?, local: None, prefix: Path::default() })
    }

    /// Writes a file. A file of the same path is replaced at once. In a folder of this machine it
    /// is private, and on disk when this returns.
    ///
    /// # Errors
    ///
    /// The store refuses, cannot be reached, or takes too long.
    pub async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        let path = self.path(path)?;
        let Some(local) = &self.local else {
            let put = self.inner.put(&path, PutPayload::from(bytes));
            tokio::time::timeout(ATTEMPT, put).await.map_err(|_| StoreError::TooSlow)??;
            return Ok(());
        };
        let path = local.path_to_filesystem(&path)?;
        let put = tokio::task::spawn_blocking(move || write_durably(&path, &bytes));
        let put = tokio::time::timeout(ATTEMPT, put).await.map_err(|_| StoreError::TooSlow)?;
        put.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(StoreError::Folder)
    }

    /// Returns the files below a folder of the dataset.
    ///
    /// # Errors
    ///
    /// The store refuses, cannot be reached, or takes too long.
    pub async fn list(&self, folder: &str) -> Result<Vec<StoredFile>, StoreError> {
        let folder = self.path(folder)?;
        let mut entries = self.inner.list(Some(&folder));
        let mut files = Vec::new();
        loop {
            let next = tokio::time::timeout(ATTEMPT, entries.next());
            let Some(entry) = next.await.map_err(|_| StoreError::TooSlow)? else {
                return Ok(files);
            };
            let entry = entry?;
            let parts = entry.location.prefix_match(&self.prefix);
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
            let written = entry.last_modified.into();
            files.push(StoredFile { path: parts.join("/"), size: entry.size, written });
        }
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    ///
    /// The store refuses, cannot be reached, or takes too long.
    pub async fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let path = self.path(path)?;
        let get = async { self.inner.get(&path).await?.bytes().await };
        Ok(tokio::time::timeout(ATTEMPT, get).await.map_err(|_| StoreError::TooSlow)??)
    }

    /// Begins to read a file in parts.
    ///
    /// # Errors
    ///
    /// The store refuses, cannot be reached, or takes too long, or the file has more than `most`
    /// bytes.
    pub async fn stream(&self, path: &str, most: u64) -> Result<Parts, StoreError> {
        let path = self.path(path)?;
        let get = tokio::time::timeout(ATTEMPT, self.inner.get(&path));
        let found = get.await.map_err(|_| StoreError::TooSlow)??;
        match found.meta.size {
            size if size > most => Err(StoreError::TooLarge(size)),
            _ => Ok(Parts(found.into_stream())),
        }
    }

    /// Returns the path of a file of the dataset in the store.
    fn path(&self, path: &str) -> Result<Path, StoreError> {
        let path = Path::parse(path).map_err(object_store::Error::from)?;
        Ok(self.prefix.parts().chain(path.parts()).collect())
    }
}

/// Adds a file to a dataset, and waits until it is on disk: the agent removes its own copy then.
fn write_durably(path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    add(path, bytes)?.sync_all()?;
    File::open(path.parent().unwrap_or(path))?.sync_all()
}

/// The parts of a file, one after the other.
pub struct Parts(BoxStream<'static, object_store::Result<Bytes>>);

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts")
    }
}

impl Parts {
    /// Returns the next part, or `None` at the end.
    ///
    /// # Errors
    ///
    /// The store cannot be reached any more, or takes too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        let next = tokio::time::timeout(ATTEMPT, self.0.next());
        Ok(next.await.map_err(|_| StoreError::TooSlow)?.transpose()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    use crate::dataset::Partition;
    use crate::resource::Resource;
    use crate::schema::REPORTS;

    #[test]
    fn a_file_of_a_local_store_is_private_and_has_the_path_of_the_dataset() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("store");
        let store = Store::open(&format!("file://{}", folder.display())).expect("it is one");
        let mut resource = Resource::default();
        resource.set("service.name", "a b/é");
        let path = Partition::new(&resource, 0).path(&REPORTS, "x");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        for text in ["one", "two"] {
            let put = store.put(&path, text.as_bytes().to_vec());
            runtime.block_on(put).expect("there is space");
        }
        let file = std::fs::read(folder.join(&path));
        assert_eq!(file.expect("it has this path"), b"two");
        // Reports and stacks of root's programs, among others.
        for part in std::path::Path::new(&path).ancestors() {
            let metadata = std::fs::metadata(folder.join(part)).expect("it is there");
            let mode = metadata.permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", part.display());
        }
        let files = runtime.block_on(store.list("v1/reports")).expect("it can be read");
        let [StoredFile { path: listed, size: 3, .. }] = &files[..] else { panic!("{files:?}") };
        assert_eq!(*listed, path);
        let bytes = runtime.block_on(store.get(listed)).expect("it can be read");
        assert_eq!(&bytes[..], b"two");
        assert_eq!(runtime.block_on(store.list("v1/blocks")).expect("there are none"), []);
        assert!(Store::open("http://x").is_err());
        assert!(Store::open("file://x").is_err());
    }
}
