//! Fuzzes the target `dump`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memreport_fuzz::targets::dump(bytes));
