//! The same tests in a test binary of their own.

dmd::global_allocator!();

macro_rules! modules {
    ($($name:ident)*) => {$(
        #[path = "../src/ten.rs"]
        mod $name;
    )*};
}

modules!(m00 m01 m02 m03 m04 m05 m06);
