//! The attribution of a thread's new blocks: the scope that it is in, and the reporter that it
//! allocates for. Both are in one word, since the tracker's hooks read it for every block.
#![cfg_attr(memreport_preload, expect(unsafe_code, reason = "a thread-local of the linker's"))]

use core::cell::Cell;

crate::__hook_local! {
    /// The scope in the high half, the reporter in the low half; 0 is none.
    static CURRENT: Cell<u32> = Cell::new(0), "memreport_hook_attribution"
}

/// Returns the scope of this thread in the high half of the word, and the reporter in the low half;
/// 0 is none.
#[inline(always)]
#[must_use]
pub fn current_attribution() -> u32 {
    CURRENT.try_with(Cell::get).unwrap_or(0)
}

/// Returns the scope of this thread.
#[inline]
pub(super) fn scope() -> u16 {
    (current_attribution() >> 16) as u16
}

/// Sets the scope of this thread. Returns the former one.
pub(super) fn replace_scope(scope: u16) -> u16 {
    replace(|current| u32::from(scope) << 16 | current & 0xffff, |former| former >> 16)
}

/// Returns the reporter of this thread.
#[inline]
pub(super) fn reporter() -> u32 {
    current_attribution() & 0xffff
}

/// Sets the reporter of this thread. Returns the former one.
pub(super) fn replace_reporter(reporter: u16) -> u16 {
    replace(|current| current & !0xffff | u32::from(reporter), |former| former)
}

/// Changes the attribution. Returns a part of the former one.
fn replace(change: impl Fn(u32) -> u32, part: impl Fn(u32) -> u32) -> u16 {
    let former = CURRENT.try_with(|current| current.replace(change(current.get()))).unwrap_or(0);
    (part(former) & 0xffff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_and_reporter_do_not_touch_each_other() {
        assert_eq!(current_attribution(), 0);
        assert_eq!((replace_scope(0xfedc), replace_reporter(0x8765)), (0, 0));
        assert_eq!(current_attribution(), 0xfedc_8765);
        assert_eq!((scope(), reporter()), (0xfedc, 0x8765));
        assert_eq!((replace_scope(0), reporter()), (0xfedc, 0x8765));
        assert_eq!((replace_reporter(0), scope()), (0x8765, 0));
        assert_eq!(current_attribution(), 0);
    }
}
