//! Tests the derive's errors: each file of `ui` beside the compiler's output.
//!
//! After a change of wording, run `TRYBUILD=overwrite cargo test -p memreport-derive --test ui`,
//! and read the difference.

#[test]
#[cfg_attr(miri, ignore = "runs the compiler")]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
