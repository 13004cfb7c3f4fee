//! Tests boxes.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr};
use std::path::Path;
use std::pin::Pin;

use dmd::assert_fully_reported;
use memreport::MallocSizeOf;

use super::{Aligned, Nothing, text, texts};

pub(super) trait Shape: MallocSizeOf {
    fn corners(&self) -> usize;
}

#[derive(MallocSizeOf)]
pub(super) struct Polygon {
    pub(super) name: Cow<'static, str>,
    pub(super) points: Vec<(f64, f64)>,
}

impl Shape for Polygon {
    fn corners(&self) -> usize {
        self.points.len()
    }
}

#[test]
fn boxes() {
    assert_fully_reported!(Box::new(1_u8));
    assert_fully_reported!(Box::new(Nothing));
    assert_fully_reported!(Box::new(Aligned(1)));
    assert_fully_reported!(Box::new(Box::new(text(10))));
    assert_fully_reported!(texts(10).collect::<Box<[String]>>());
    assert_fully_reported!((Box::<[String]>::default(), Box::<str>::default()));
    assert_fully_reported!(text(50).into_boxed_str());
    assert_fully_reported!(Box::<Path>::from(Path::new("some/path")));
    assert_fully_reported!((Box::<OsStr>::from(OsStr::new("os")), Box::<CStr>::from(c"c")));
    assert_fully_reported!(Box::pin(text(60)));
    assert_fully_reported!(Pin::new(Box::new([text(60), text(1)])));
    let shape = Polygon { name: Cow::Owned(text(20)), points: vec![(0.0, 0.0); 7] };
    assert_eq!(shape.corners(), 7);
    let flat = Polygon { name: Cow::Borrowed("flat"), points: Vec::new() };
    assert_fully_reported!(vec![Box::new(shape) as Box<dyn Shape>, Box::new(flat)]);
}
