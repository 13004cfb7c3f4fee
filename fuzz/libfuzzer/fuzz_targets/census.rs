//! Fuzzes the target `census`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memreport_fuzz::targets::census(bytes));
