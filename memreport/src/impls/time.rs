//! Measures times of `time`, which own nothing. *Exact.*

use time::{
    Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcDateTime, UtcOffset, Weekday,
};

owns_nothing!(Date, Duration, Month, OffsetDateTime, PrimitiveDateTime);
owns_nothing!(Time, UtcDateTime, UtcOffset, Weekday);
