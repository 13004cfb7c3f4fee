//! Functions that the linker merged, in the names of a program's own allocations.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![expect(unsafe_code, reason = "functions in assembly")]

use dmd::census::{function_names, type_names};

dmd::global_allocator!();

/// Allocates, called by the two functions below.
extern "C" fn allocate() -> *mut [u64; 77] {
    Box::into_raw(Box::new([1; 77]))
}

// Two functions at one address, as a linker that folds equal code makes them.
std::arch::global_asm!(
    ".type _ZN5plant3oneE, @function",
    ".type _ZN5plant5otherE, @function",
    "_ZN5plant3oneE:",
    "_ZN5plant5otherE:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "call {allocate}",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size _ZN5plant3oneE, . - _ZN5plant3oneE",
    ".size _ZN5plant5otherE, . - _ZN5plant5otherE",
    allocate = sym allocate,
);

#[inline(never)]
fn merged() -> Box<[u64; 77]> {
    unsafe extern "C" {
        #[link_name = "_ZN5plant3oneE"]
        fn one() -> *mut [u64; 77];
    }
    // SAFETY: the function calls `allocate`, and has its type.
    let raw = unsafe { one() };
    // SAFETY: `allocate` made it from a box.
    unsafe { Box::from_raw(raw) }
}

#[test]
fn merged_functions_are_all_named() {
    let observer = dmd::observe::Observer::start().unwrap();
    let value = merged();
    let site = dmd::allocation_site(&*value).unwrap();
    let names = function_names(&[site]).unwrap();
    let has = |name: &str| names[0].iter().any(|function| function == name);
    assert!(has("one of plant::one, plant::other"), "{names:#?}");
    assert!(site.stack().functions().iter().any(|name| name.starts_with("plant::")));
    assert_eq!(type_names(&[site]).unwrap(), [Some("Box<[u64; 77]>".to_owned())]);
    drop((value, observer));
}
