//! Rules for programs that were built with frame pointers: there is only one, and none is looked up.

use super::cfi;
use super::frames::{Looked, Place};
use super::modules;
use super::rule::Packed;

/// The rule of the code there: that of frame pointers in the program itself. Libraries were built by others, as they liked.
#[inline(always)]
pub(super) fn look_up(place: Place) -> Option<Looked> {
    if !place.is_exact && modules::is_own(place.code) {
        Some(Looked { rule: Packed::FRAME, is_fixed: true })
    } else {
        cfi::look_up(place)
    }
}

/// Where nothing but frame pointers is understood.
#[inline(always)]
pub(super) fn look_up_everywhere(_place: Place) -> Option<Looked> {
    Some(Looked { rule: Packed::FRAME, is_fixed: true })
}
