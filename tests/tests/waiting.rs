//! Tests the tree of a scan that a program with DMD has saved: stacks hold the heap.

use memreport_analysis::ownership::{OwnerRow, OwnerTree, OwnerTreeOptions};

use crate::scans;

/// Runs the program and returns the tree of its scan.
fn tree() -> OwnerTree {
    let scan = scans::of_program(env!("CARGO_BIN_EXE_waiting"), "waiting.json");
    OwnerTree::new(&scan.dump, &scan.types, &OwnerTreeOptions::default()).expect("it is a scan")
}

/// Returns the first row, in any depth, whose name begins so.
fn find<'t>(rows: &'t [OwnerRow], name: &str) -> Option<&'t OwnerRow> {
    let here = rows.iter().find(|row| row.name.starts_with(name));
    here.or_else(|| rows.iter().find_map(|row| find(&row.children, name)))
}

#[test]
fn stacks_and_thread_locals_of_a_saved_scan_hold_the_heap() {
    let tree = tree();
    let row =
        |rows, name| find(rows, name).unwrap_or_else(|| panic!("no {name} in {:?}", tree.rows));
    // The thread that saved the scan has functions and variables.
    let main = tree.rows.iter().find(|row| row.name.ends_with("(waiting)")).expect("a thread");
    let serve = row(&main.children, "waiting::serve");
    let orders = row(&serve.children, "orders: Vec<String>");
    // Usable bytes: 24,008 of the list, and 104 of each text of 96 bytes.
    assert_eq!(orders.bytes, 24_008 + 1000 * 104);
    let locals = main.children.iter().find(|row| row.name == "thread-locals").expect("it has some");
    let recent = row(&locals.children, "waiting::RECENT");
    assert_eq!(recent.bytes, 40 + 1000);
    // The other one has its stack, and hangs on its handle.
    let main_function = row(&main.children, "waiting::main");
    let worker = row(&main_function.children, "thread ");
    assert!(worker.name.ends_with("(worker)"), "{}", worker.name);
    assert!(worker.bytes >= 10_000 * 24 + 80_008 + 100 * 1000, "{}", worker.bytes);
    let recent = row(&worker.children, "waiting::RECENT");
    assert!(recent.bytes >= 100 * 1000, "{}", recent.bytes);
    assert!(tree.named * 100 > tree.bytes * 99, "{} of {}", tree.named, tree.bytes);
}
