//! Times of `jiff`, which own nothing, *exact*, and time zones: of one that was read from a file or a text, its own block is seen with
//! the tracker, once for all that share it, and what its transitions take is not. *Lower bound.*

use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};
use jiff::tz::{Dst, Offset, TimeZone};
use jiff::{SignedDuration, Span, SpanFieldwise, Timestamp, Unit, Zoned};

use crate::allocator::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(Timestamp, Span, SpanFieldwise, SignedDuration, Unit);
owns_nothing!(Date, DateTime, ISOWeekDate, Time, Weekday, Dst, Offset);

impl MallocSizeOf for TimeZone {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        // The low bits of its pointer say what kind it is of; it leads into the block all the same.
        ops.shared_blocks_by_words(words_of(self), (self, 0), usize::MAX);
    }
}

impl MallocSizeOf for Zoned {
    #[inline]
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.time_zone().add_size_of_excluding_this(ops);
    }
}
