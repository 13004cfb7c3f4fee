//! Sends a request to a local server over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::failure::Failure;

/// Returns the body of a successful response.
pub(crate) fn get(address: &str, path: &str) -> Result<String, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    // In HTTP/1.0 the body is one piece up to the end of the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("it is no answer")?;
    let is_good = head.lines().next().is_some_and(|line| line.contains(" 200 "));
    if is_good { Ok(body.to_owned()) } else { Err(head.to_owned().into()) }
}
