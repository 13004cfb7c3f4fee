//! The age of a block in logarithmic classes, so that blocks of nearly the same age form a group.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "milliseconds since a process began"
)]

/// An age, rounded down to its class. Each octave has eight classes, so the error is at most 9 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Age(u16);

/// The number of classes in which an age doubles.
const CLASSES_PER_OCTAVE: f64 = 8.0;

impl Age {
    /// Returns the age at `now` of a block that was allocated at `time`, both in nanoseconds of the
    /// monotonic clock. A `time` of 0 means that no time was kept.
    pub(crate) fn of(time: u64, now: u64) -> Age {
        let milliseconds = now.saturating_sub(time) / 1_000_000;
        Age(match (time, milliseconds) {
            (0, _) => 0,
            (_, 0) => 1,
            // The addend corrects logarithms that are slightly below a whole number.
            (_, milliseconds) => {
                ((milliseconds as f64).log2() * CLASSES_PER_OCTAVE + 1e-9) as u16 + 2
            }
        })
    }

    /// Returns the smallest age of the class in milliseconds; `None` if no time was kept.
    pub(crate) fn milliseconds(self) -> Option<u64> {
        let class = self.0.checked_sub(1)?;
        let exponent = class.checked_sub(1).map(|class| f64::from(class) / CLASSES_PER_OCTAVE);
        Some(exponent.map_or(0, |exponent| (exponent.exp2() - 1e-6).ceil() as u64))
    }

    /// Returns the number of the class; 0 if no time was kept.
    pub(crate) fn number(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_its_class_or_up_to_nine_percent_more() {
        const DAY: u64 = 24 * 3600 * 1000;
        let samples = (0..5000).chain((5000..40 * DAY).step_by(7_777_777));
        for milliseconds in samples {
            let age = Age::of(1, 1 + milliseconds * 1_000_000 + 999_998);
            let class = age.milliseconds().unwrap();
            assert!(class <= milliseconds, "{milliseconds} ms in the class of {class}");
            assert!(milliseconds as f64 <= class as f64 * 1.0906, "{milliseconds} > {class}");
            let again = Age::of(1, 1 + class * 1_000_000);
            assert_eq!(again, age, "{milliseconds}: the class begins at {class}");
        }
        for milliseconds in 0..13 {
            assert_eq!(Age::of(1, 1 + milliseconds * 1_000_000).milliseconds(), Some(milliseconds));
        }
    }

    #[test]
    fn without_a_time_there_is_no_age() {
        assert_eq!(Age::of(0, 5).milliseconds(), None);
        assert_eq!(Age::of(7, 5).milliseconds(), Some(0), "a clock of another thread");
    }
}
