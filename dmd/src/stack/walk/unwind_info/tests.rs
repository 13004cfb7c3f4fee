//! Rules of hand-written unwind information, in the forms that compilers and the C library use.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "names labels in assembly")]

use std::arch::global_asm;

use super::super::modules;
use super::super::rule::{Base, CodeAddress, PlainRule, Rule, SavedOffsets};

// This code never runs. Each row has one byte, so a label is its address.
global_asm!(
    ".pushsection .text",
    ".globl memreport_test_rules",
    ".hidden memreport_test_rules",
    "memreport_test_rules:",
    ".cfi_startproc",
    "nop", // 0: as on entry
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "nop", // 1: the frame pointer is saved
    ".cfi_def_cfa_register rbp",
    "nop", // 2: and set up
    ".cfi_def_cfa rsp, 8192",
    ".cfi_offset rbp, -56",
    "nop", // 3: a big frame
    ".cfi_def_cfa rbx, 16",
    "nop", // 4: by a register that is not followed
    // The CFA is the word below the frame pointer, and the caller's frame pointer is saved at its
    // own.
    ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06",
    ".cfi_escape 0x10, 6, 2, 0x76, 0",
    "nop", // 5: a realigned stack
    // rsp + 8 + ((rip & 15) >= 11) * 8
    ".cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22",
    ".cfi_same_value rbp",
    ".balign 16",
    ".skip 3",
    "nop", // at 3 of 16: the procedure linkage table, before its push
    ".skip 9",
    "nop", // at 13 of 16: and after it
    ".cfi_undefined rip",
    "nop", // the outermost
    ".cfi_endproc",
    "nop", // no unwind information
    ".cfi_startproc",
    ".cfi_signal_frame",
    // The C library's signal frame: all registers are in the kernel's record.
    ".cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06",
    ".cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01",
    ".cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0x00",
    "nop", // the signal frame
    ".cfi_endproc",
    ".popsection",
);

unsafe extern "C" {
    #[link_name = "memreport_test_rules"]
    static CODE: u8;
}

fn rule(code: usize, is_exact: bool) -> Option<Rule> {
    modules::record_loaded(modules::Moment::Initialiser);
    modules::find(code).expect("this program").unwind_info.rule(CodeAddress { code, is_exact })
}

fn plain(base: Base, cfa: usize, saved: usize) -> Option<Rule> {
    Some(Rule::Plain(PlainRule { base, cfa, saved }))
}

#[test]
fn every_form_that_compilers_use_has_a_rule() {
    let start = (&raw const CODE).addr();
    let drap = Rule::Indirect {
        base: Base::FramePointer,
        cfa: -8,
        saved_at: SavedOffsets { return_address: None, frame_pointer: Some(0) },
        is_signal: false,
    };
    let table = [
        plain(Base::StackPointer, 8, 8),
        plain(Base::StackPointer, 16, 16),
        plain(Base::FramePointer, 16, 16),
        plain(Base::StackPointer, 8192, 56),
        Some(Rule::Unsupported),
        Some(drap),
    ];
    for (at, expected) in table.into_iter().enumerate() {
        assert_eq!(rule(start + at, false), expected, "{at}");
    }
    let table_start = (start + 6).next_multiple_of(16);
    assert_eq!(rule(table_start + 3, true), plain(Base::StackPointer, 8, 8));
    assert_eq!(rule(table_start + 13, true), plain(Base::StackPointer, 16, 8));
    // The expression needs the instruction pointer at the call, which is unknown for a caller.
    assert_eq!(rule(table_start + 13, false), Some(Rule::Unsupported));
    assert_eq!(rule(table_start + 14, false), Some(Rule::Outermost));
    assert_eq!(rule(table_start + 15, false), None);
    let signal = Rule::Indirect {
        base: Base::StackPointer,
        cfa: 160,
        saved_at: SavedOffsets { return_address: Some(168), frame_pointer: Some(120) },
        is_signal: true,
    };
    assert_eq!(rule(table_start + 16, true), Some(signal));
}
