//! Tests types that own nothing.

use dmd::assert_fully_reported;

use super::owns_blocks;

#[test]
fn times_and_identifiers() {
    let now = chrono::Utc::now();
    owns_blocks(&(now, now.naive_utc(), now.fixed_offset(), chrono::TimeDelta::zero()), 0);
    assert_fully_reported!((chrono::Local::now(), chrono::Weekday::Mon, chrono::Days::new(1)));
    let time = time::OffsetDateTime::UNIX_EPOCH;
    owns_blocks(&(time, time.date(), time.time(), time.weekday(), time::Duration::SECOND), 0);
    owns_blocks(&uuid::Uuid::nil(), 0);
}

#[test]
fn short_numbers() {
    owns_blocks(&(half::f16::ONE, half::bf16::PI), 0);
}

#[test]
fn hashers() {
    owns_blocks(&(rustc_hash::FxBuildHasher, rustc_hash::FxHasher::default()), 0);
    owns_blocks(&ahash::RandomState::new(), 0);
}

#[test]
fn indices_and_keys() {
    owns_blocks(&(petgraph::graph::NodeIndex::<u32>::new(1), petgraph::Direction::Outgoing), 0);
    owns_blocks(&slotmap::DefaultKey::default(), 0);
    owns_blocks(&(http::StatusCode::OK, http::Version::HTTP_11), 0);
}
