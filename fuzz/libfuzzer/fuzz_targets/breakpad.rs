//! Fuzzes the target `breakpad`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memreport_fuzz::targets::breakpad(bytes));
