//! Tests values and memory with several owners.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, ScalarBuffer};
use bytes::{Bytes, BytesMut};
use dmd::assert_fully_reported;

use super::{Aligned, owns_blocks, text, texts};

#[test]
fn swapped_values() {
    assert_fully_reported!(ArcSwap::from_pointee(text(100)));
    assert_fully_reported!((
        ArcSwapOption::<String>::empty(),
        ArcSwapOption::from_pointee(text(9))
    ));
    let shared = Arc::new(text(100));
    assert_fully_reported!((ArcSwap::new(Arc::clone(&shared)), shared));
}

#[test]
fn counted_values() {
    assert_fully_reported!(triomphe::Arc::new(text(100)));
    assert_fully_reported!(triomphe::Arc::new(Aligned(1)));
    assert_fully_reported!(triomphe::Arc::new(()));
    let slice: triomphe::Arc<[String]> = texts(9).collect::<Vec<_>>().into();
    assert_fully_reported!([slice.clone(), slice]);
}

#[test]
fn slices_of_bytes() {
    assert_fully_reported!((Bytes::new(), Bytes::from_static(b"static")));
    assert_fully_reported!(Bytes::from(vec![1_u8; 100]));
    assert_fully_reported!(Bytes::from(Vec::from_iter((0..100_u8).filter(|byte| byte % 3 > 0))));
    assert_fully_reported!(Bytes::copy_from_slice(&[1; 33]));
    assert_fully_reported!(Bytes::from_owner(vec![1_u8; 100]));
    assert_fully_reported!(Bytes::from(text(50).into_boxed_str().into_boxed_bytes()));
    let whole = Bytes::from(vec![1_u8; 1000]);
    assert_fully_reported!([whole.slice(10..20), whole.slice(500..), whole.clone(), whole]);
    let whole = Bytes::from(vec![1_u8; 1000]);
    let ends = [whole.slice(999..), whole.slice(0..1)];
    drop(whole);
    assert_fully_reported!(ends);
}

#[test]
fn slices_of_nothing() {
    let whole = Bytes::from(vec![1_u8; 1000]);
    owns_blocks(&whole.slice(10..10), 0);
    let mut rest = Bytes::from(vec![1_u8; 1000]);
    let before = rest.split_to(1000);
    assert_fully_reported!((rest, before));
    drop(whole);
}

#[test]
fn growing_bytes() {
    assert_fully_reported!(BytesMut::new());
    assert_fully_reported!(BytesMut::with_capacity(1000));
    let mut bytes = BytesMut::with_capacity(1000);
    bytes.extend_from_slice(&[1; 500]);
    let first = bytes.split_to(100);
    let second = bytes.split_off(50).freeze();
    assert_fully_reported!((bytes, first, second.slice(3..9), second));
}

#[test]
fn arrow_buffers() {
    assert_fully_reported!(Buffer::from_vec(vec![1_u64; 100]));
    assert_fully_reported!(Buffer::from(&[1_u8; 33]));
    assert_fully_reported!(MutableBuffer::with_capacity(1000));
    assert_fully_reported!(MutableBuffer::new(0));
    let values = ScalarBuffer::<i32>::from((0..1000).collect::<Vec<_>>());
    assert_fully_reported!([values.slice(10, 20), values.slice(1000, 0), values]);
    assert_fully_reported!(NullBuffer::from(vec![true, false, true]));
    let slice_of_nothing = ScalarBuffer::<i32>::from(vec![1; 100]).slice(100, 0);
    assert_fully_reported!(slice_of_nothing);
}
