//! Fetches debug files from servers of the debuginfod protocol, each build once.
//!
//! The cache is laid out as that of elfutils' clients, `ID/debuginfo`, so that they can share it.

use std::io::Write;
use std::path::{Path, PathBuf};

use about_memory::Failure;
use memreport::__private::PrivateFile;
use tokio::runtime::Runtime;

use crate::store::{Store, StoreError};

/// The most bytes of a debug file, the largest that is read.
const LARGEST: u64 = 4 << 30;

/// Servers of debug files, and the folder of the files that they sent.
#[derive(Debug)]
pub struct Servers {
    stores: Vec<(String, Store)>,
    cache: PathBuf,
    runtime: Runtime,
}

impl Servers {
    /// Opens the servers at these addresses, such as `https://debuginfod.debian.net`. Nothing is
    /// requested yet.
    ///
    /// # Errors
    ///
    /// An address is none, or this build has no HTTP client.
    pub fn open(addresses: &[String], cache: PathBuf) -> Result<Self, Failure> {
        let mut stores = Vec::new();
        for address in addresses {
            stores.push((address.clone(), Store::open_http(address)?));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Servers { stores, cache, runtime })
    }

    /// Returns the folder of the files that were fetched.
    #[must_use]
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Fetches the debug file of a build from the first server that has it. Returns whether one
    /// has. A server that fails is named in the notes, and not asked again.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn fetch(&mut self, build_id: &str, notes: &mut dyn Write) -> Result<bool, Failure> {
        // Nothing but an id: a dump must not lead out of the cache.
        if build_id.is_empty() || !build_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(false);
        }
        let id = build_id.to_ascii_lowercase();
        let place = self.cache.join(&id).join("debuginfo");
        let path = format!("buildid/{id}/debuginfo");
        let mut at = 0;
        while let Some((address, store)) = self.stores.get(at) {
            match self.runtime.block_on(download(store, &path, &place)) {
                Ok(bytes) => {
                    writeln!(notes, "{address}: fetched the debug file of {id}, {bytes} bytes")?;
                    return Ok(true);
                }
                Err(StoreError::Folder(error)) => return Err(error.into()),
                Err(error) if error.is_not_found() => at += 1,
                Err(error) => {
                    writeln!(notes, "{address}: {error}; it is not asked again")?;
                    self.stores.remove(at);
                }
            }
        }
        Ok(false)
    }
}

/// Writes a file of a server, which appears when it is complete. Returns its bytes.
async fn download(store: &Store, path: &str, place: &Path) -> Result<u64, StoreError> {
    let named = |error: std::io::Error| {
        let message = format!("{}: {error}", place.display());
        StoreError::Folder(std::io::Error::new(error.kind(), message))
    };
    let mut stream = store.stream(path, LARGEST).await?;
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).map_err(named)?;
    }
    let mut file = PrivateFile::create(place).map_err(named)?;
    let mut length = 0;
    while let Some(bytes) = stream.next().await? {
        length += bytes.len() as u64;
        file.write_all(&bytes).map_err(named)?;
    }
    file.keep().map_err(named)?;
    Ok(length)
}
