//! Modules with the same ten tests: each runs beside others like itself.

macro_rules! modules {
    ($($name:ident)*) => {$(
        #[path = "ten.rs"]
        mod $name;
    )*};
}

modules!(m00 m01 m02 m03 m04 m05 m06 m07 m08 m09 m10 m11);
