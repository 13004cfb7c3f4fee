//! Tests vectors, matrices and other numbers.

use dmd::assert_fully_reported;
use nalgebra::{
    DMatrix, DVector, Isometry3, Matrix3, Point3, Rotation2, Similarity2, UnitQuaternion, Vector3,
};

use super::{owns_blocks, text};

#[test]
fn matrices() {
    assert_fully_reported!(DVector::<f64>::zeros(100));
    assert_fully_reported!(DVector::<u8>::zeros(0));
    assert_fully_reported!(DMatrix::from_fn(5, 7, |row, column| text(row * 7 + column)));
    assert_fully_reported!(DMatrix::<u16>::zeros(30, 40).remove_columns(3, 30));
    assert_fully_reported!(nalgebra::Matrix2xX::<f32>::zeros(9));
    assert_fully_reported!(nalgebra::SMatrix::<String, 2, 3>::from_fn(|row, _| text(row)));
    assert_fully_reported!(nalgebra::Point2::new(text(1), text(30)));
    let matrix = DMatrix::<f64>::identity(9, 9);
    owns_blocks(&matrix.view((1, 1), (3, 3)), 0);
}

#[test]
fn what_is_made_of_few_numbers() {
    owns_blocks(
        &(Vector3::new(1.0, 2.0, 3.0), Point3::<f32>::origin(), Matrix3::<f64>::zeros()),
        0,
    );
    owns_blocks(&(UnitQuaternion::<f64>::identity(), Isometry3::<f64>::identity()), 0);
    owns_blocks(&(Rotation2::<f32>::new(1.0), Similarity2::<f32>::identity()), 0);
    owns_blocks(
        &(glam::Vec3A::ONE, glam::DMat4::IDENTITY, glam::Quat::IDENTITY, glam::UVec2::ONE),
        0,
    );
    owns_blocks(&(glam::BVec4::TRUE, glam::Affine3A::IDENTITY, glam::I64Vec3::ZERO), 0);
    owns_blocks(&rust_decimal::Decimal::new(314, 2), 0);
}

#[test]
fn times_of_jiff() {
    use jiff::{Span, Timestamp, civil};
    let date = civil::date(2024, 2, 29);
    owns_blocks(&(Timestamp::UNIX_EPOCH, date, date.at(1, 2, 3, 4), Span::new().hours(5)), 0);
    assert_fully_reported!(Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC));
    assert_fully_reported!(jiff::tz::TimeZone::fixed(jiff::tz::offset(-3)));
}
