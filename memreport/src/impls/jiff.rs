//! Measures times of `jiff`, which own nothing, *exact*, and time zones, *lower bounds*.
//!
//! The block of a zone that was read from a file or a text is counted with the tracker, once for
//! all its owners. Its transitions are not.

use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};
use jiff::tz::{Dst, Offset, TimeZone};
use jiff::{SignedDuration, Span, SpanFieldwise, Timestamp, Unit, Zoned};

use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(Timestamp, Span, SpanFieldwise, SignedDuration, Unit);
owns_nothing!(Date, DateTime, ISOWeekDate, Time, Weekday, Dst, Offset);

impl MallocSizeOf for TimeZone {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // The low bits of the pointer are a tag. It points into the block all the same.
        ops.shared_blocks_by_words(words_of(self), (self, 0), usize::MAX);
    }
}

impl MallocSizeOf for Zoned {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.time_zone().add_size_of_excluding_this(ops);
    }
}
