//! Tests errors.

use std::error::Error;
use std::ffi::CString;

use dmd::assert_fully_reported;

use super::{owns_blocks, text};

#[test]
fn errors_that_own_nothing() {
    owns_blocks(&("x".parse::<u8>(), "x".parse::<f64>(), "x".parse::<bool>(), std::fmt::Error), 0);
    let byte = std::hint::black_box(0xff);
    owns_blocks(&(std::str::from_utf8(&[byte]).unwrap_err(), u8::try_from(300).unwrap_err()), 0);
}

#[test]
fn errors_that_give_back() {
    let bytes = [text(50).into_bytes(), vec![0xff], text(9).into_bytes()].concat();
    assert_fully_reported!(String::from_utf8(bytes.clone()).unwrap_err());
    assert_fully_reported!(CString::new(bytes.clone()).unwrap().into_string().unwrap_err());
    assert_fully_reported!(CString::new([bytes, vec![0, 1]].concat()).unwrap_err());
    let (sender, receiver) = std::sync::mpsc::sync_channel(0);
    assert_fully_reported!(sender.try_send(text(40)).unwrap_err());
    drop(receiver);
    assert_fully_reported!(sender.send(text(40)).unwrap_err());
}

#[test]
fn errors_of_any_kind() {
    assert_fully_reported!(Box::<dyn Error>::from(std::fmt::Error));
    assert_fully_reported!(Box::<dyn Error>::from("x".parse::<u8>().unwrap_err()));
    let error = std::io::Error::other(std::fmt::Error);
    assert_fully_reported!(Box::<dyn Error + Send + Sync>::from(error));
    // The text itself is not measured.
    let error: Box<dyn Error + Send> = Box::<dyn Error + Send + Sync>::from(text(40));
    owns_blocks(&error, 1);
}

#[test]
fn backtraces() {
    use std::backtrace::Backtrace;
    assert_fully_reported!(Backtrace::disabled());
    assert_fully_reported!(Backtrace::force_capture());
}
