//! What the derive refuses, with its messages: each file of `ui` beside the compiler's answer.
//!
//! After a change of wording: `TRYBUILD=overwrite cargo test -p memreport --test ui`, and read the difference.

#[test]
#[cfg_attr(miri, ignore = "runs the compiler")]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
