//! Tests values that own nothing, text, and composed values.

use std::cmp::Reverse;
use std::ffi::{CString, OsString};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dmd::assert_fully_reported;
use memreport::{Measured, measure};

use super::{owns_blocks, text};

#[test]
fn plain_values_own_nothing() {
    owns_blocks(&(1_u8, 2_i128, 3.0_f64, 'c', true, (), Duration::ZERO, Instant::now()), 0);
    owns_blocks(&(PhantomData::<String>, &text(9), "text", std::num::NonZeroU8::MIN, 1..9), 0);
    owns_blocks(
        &(std::sync::atomic::AtomicU64::new(1), measure as fn(&()) -> Measured as usize),
        0,
    );
    owns_blocks(&(std::net::IpAddr::from([1, 2, 3, 4]), std::thread::current().id()), 0);
    owns_blocks(&(text as fn(usize) -> String), 0);
}

#[test]
fn strings() {
    assert_fully_reported!(String::new());
    assert_fully_reported!(text(1));
    assert_fully_reported!(text(1 << 20));
    let mut slack = String::with_capacity(5000);
    slack.push('x');
    assert_fully_reported!(slack);
    assert_fully_reported!((
        OsString::from(text(33)),
        OsString::with_capacity(99),
        OsString::new()
    ));
    assert_fully_reported!((PathBuf::from(text(33)), PathBuf::with_capacity(99), PathBuf::new()));
    assert_fully_reported!((CString::new(text(33)).unwrap(), CString::default()));
}

#[test]
fn composed_values() {
    assert_fully_reported!((text(1), Some(text(2)), None::<String>, Ok::<_, ()>(text(3))));
    assert_fully_reported!((Err::<(), _>(text(4)), Reverse(text(5)), text(6)..text(7)));
    assert_fully_reported!((text(8)..=text(9), std::ops::Bound::Excluded(text(10)), ..text(11)));
    assert_fully_reported!((
        (text(1),),
        (text(1), text(2), text(3), text(4), text(5), text(6), text(7), text(8), text(9)),
        std::task::Poll::Ready(text(10)),
        std::ops::ControlFlow::<String, String>::Break(text(11)),
    ));
    // Not freed by dropping, but owned.
    let kept = ManuallyDrop::new(text(70));
    owns_blocks(&kept, 1);
    drop(ManuallyDrop::into_inner(kept));
}
