//! Fuzzes the target `core`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memreport_fuzz::targets::core(bytes));
