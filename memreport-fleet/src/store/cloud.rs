//! Opens stores of clouds and servers of files, if this build has an HTTP client.

use std::sync::Arc;

use object_store::ObjectStore;

#[cfg(feature = "cloud")]
use super::ATTEMPT;
use super::StoreError;

/// Opens a store of a cloud, with its own attempts cut short: the agent waits and tries again.
#[cfg(feature = "cloud")]
pub(super) fn open(
    scheme: &str,
    address: &str,
) -> Result<Option<Arc<dyn ObjectStore>>, StoreError> {
    use object_store::RetryConfig;
    use object_store::aws::AmazonS3Builder;
    use object_store::azure::MicrosoftAzureBuilder;
    use object_store::gcp::GoogleCloudStorageBuilder;
    let retry = RetryConfig { max_retries: 1, retry_timeout: ATTEMPT, ..RetryConfig::default() };
    Ok(Some(match scheme {
        "s3" => Arc::new(AmazonS3Builder::from_env().with_url(address).with_retry(retry).build()?),
        "gs" => Arc::new(
            GoogleCloudStorageBuilder::from_env().with_url(address).with_retry(retry).build()?,
        ),
        "az" => {
            Arc::new(MicrosoftAzureBuilder::from_env().with_url(address).with_retry(retry).build()?)
        }
        _ => return Ok(None),
    }))
}

#[cfg(not(feature = "cloud"))]
pub(super) fn open(_: &str, _: &str) -> Result<Option<Arc<dyn ObjectStore>>, StoreError> {
    Ok(None)
}

/// Opens a server of files. A part of a file, and not all of it, must come in time.
#[cfg(feature = "cloud")]
pub(super) fn open_http(address: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    use object_store::http::HttpBuilder;
    use object_store::{ClientOptions, RetryConfig};
    let is_http = ["http://", "https://"].iter().any(|scheme| address.starts_with(scheme));
    if !is_http {
        return Err(StoreError::Server(address.to_owned()));
    }
    let retry = RetryConfig { max_retries: 1, retry_timeout: ATTEMPT, ..RetryConfig::default() };
    let options = ClientOptions::new().with_allow_http(true).with_timeout_disabled();
    let server = HttpBuilder::new().with_url(address).with_retry(retry);
    Ok(Arc::new(server.with_client_options(options).build()?))
}

#[cfg(not(feature = "cloud"))]
pub(super) fn open_http(address: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    Err(StoreError::Server(address.to_owned()))
}
