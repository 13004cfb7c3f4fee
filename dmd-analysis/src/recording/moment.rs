//! A moment of a recording: its peak, its end, or a time after its beginning.

use std::str::FromStr;
use std::{error, fmt};

use super::Recording;

/// A moment of any recording.
///
/// # Examples
///
/// ```
/// use memreport_analysis::recording::Moment;
///
/// assert_eq!("peak".parse(), Ok(Moment::Peak));
/// assert_eq!("2.5s".parse(), Ok(Moment::After(2_500_000)));
/// assert_eq!("90".parse(), Ok(Moment::After(90_000_000)));
/// assert_eq!("250ms".parse(), Ok(Moment::After(250_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment {
    /// The [peak](Recording::peak) of the bytes in live blocks.
    Peak,
    /// The end.
    End,
    /// This number of microseconds after the beginning.
    After(u64),
}

/// The error for a text that is not a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMoment;

impl fmt::Display for NoMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a moment is `peak`, `end`, or seconds since the beginning: `90`, `2.5s`, `250ms`, `2min`")
    }
}

impl error::Error for NoMoment {}

impl FromStr for Moment {
    type Err = NoMoment;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and the conversion saturates"
    )]
    fn from_str(text: &str) -> Result<Self, NoMoment> {
        match text {
            "peak" => return Ok(Moment::Peak),
            "end" => return Ok(Moment::End),
            _ => {}
        }
        let units = [("ms", 1e3), ("min", 6e7), ("s", 1e6), ("", 1e6)];
        let unit =
            units.into_iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
        let (digits, size) = unit.ok_or(NoMoment)?;
        let number: f64 = digits.trim_end().parse().map_err(|_| NoMoment)?;
        if !number.is_finite() || number < 0.0 {
            return Err(NoMoment);
        }
        Ok(Moment::After((number * size).round() as u64))
    }
}

/// The error for a moment that a recording does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MomentError {
    /// The recording has no timeline, so its peak is not known.
    NoPeak,
    /// The recording ends after this number of microseconds.
    TooLate(u64),
}

impl fmt::Display for MomentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MomentError::NoPeak => {
                f.write_str("the recording has no sums, so its peak is not known; `end` is")
            }
            MomentError::TooLate(end) => {
                let (seconds, thousandths) = (end / 1_000_000, end / 1000 % 1000);
                write!(
                    f,
                    "the recording ends after {seconds}.{thousandths:03} s; `end` is that moment"
                )
            }
        }
    }
}

impl error::Error for MomentError {}

impl Recording {
    /// Returns the time of a moment, in microseconds since the beginning.
    ///
    /// # Errors
    ///
    /// If the moment is after the end, or if it is the peak of a recording without a timeline.
    pub fn at(&self, moment: Moment) -> Result<u64, MomentError> {
        match moment {
            Moment::Peak => self.peak().map(|peak| peak.time).ok_or(MomentError::NoPeak),
            Moment::End => Ok(self.length),
            Moment::After(time) if time > self.length => Err(MomentError::TooLate(self.length)),
            Moment::After(time) => Ok(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Point;

    #[test]
    fn a_moment_is_within_the_recording() {
        let point = |time, allocated_bytes| Point { time, allocated_bytes, ..Point::default() };
        let timeline = vec![point(10, 5), point(20, 9), point(30, 7)];
        let recording = Recording { timeline, length: 1_234_000, ..Recording::default() };
        assert_eq!(recording.at(Moment::Peak), Ok(20));
        assert_eq!(recording.at(Moment::End), Ok(1_234_000));
        assert_eq!(recording.at(Moment::After(7)), Ok(7));
        let late = recording.at(Moment::After(2_000_000)).unwrap_err();
        assert!(late.to_string().starts_with("the recording ends after 1.234 s"), "{late}");
        assert_eq!(Recording::default().at(Moment::Peak), Err(MomentError::NoPeak));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "s", "-1", "1h", "nan", "inf", "Peak", "1 2"] {
            assert_eq!(text.parse::<Moment>(), Err(NoMoment), "{text}");
        }
        assert_eq!("1.5min".parse(), Ok(Moment::After(90_000_000)));
        assert_eq!("3 s".parse(), Ok(Moment::After(3_000_000)));
    }
}
