//! Measures times of `chrono`, which own nothing. *Exact.*

use chrono::{
    DateTime, Days, FixedOffset, IsoWeek, Local, Month, Months, NaiveDate, NaiveDateTime,
    NaiveTime, TimeDelta, TimeZone, Utc, Weekday,
};

use crate::{MallocSizeOf, Ops};

owns_nothing!(NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc, FixedOffset, Local);
owns_nothing!(Days, IsoWeek, Month, Months, Weekday);

impl<Tz: TimeZone<Offset: MallocSizeOf>> MallocSizeOf for DateTime<Tz> {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.measure_borrowed(self.offset(), Tz::Offset::add_size_of_excluding_this);
    }
}
