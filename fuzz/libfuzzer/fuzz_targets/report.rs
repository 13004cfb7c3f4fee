//! Fuzzes the target `report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memreport_fuzz::targets::report(bytes));
