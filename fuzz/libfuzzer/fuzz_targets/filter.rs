//! Fuzzes the target `filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memreport_fuzz::targets::filter(bytes));
