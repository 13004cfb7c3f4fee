//! Fuzz targets: everything that reads bytes from elsewhere, as functions of any bytes.
//!
//! Read `seeds` (valid inputs), `mutate` (damage to them), then `targets`. `libfuzzer/` has the
//! same targets as programs for libFuzzer; `main.rs` drives them without an engine.

pub mod seeds;
pub mod mutate;
pub mod targets;
