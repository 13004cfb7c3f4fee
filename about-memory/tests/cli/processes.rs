//! Several processes in one report: their order, their total, and what one leaves to the next.

use super::folder::show;

#[test]
fn invalid_values_leak_into_the_next_explicit_tree() {
    let files = [
        r##"{"process": "P", "path": "f", "kind": 2, "units": 0, "amount": -1, "description": "About f."},
        {"process": "Q", "path": "explicit/a", "kind": 1, "units": 0, "amount": 5, "description": "About explicit/a."},
        {"process": "Q", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 5, "description": "About heap-allocated."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Other Measurements

-0.00 MB ── f [?!]

End of P
Q

WARNING: the following values are negative or unreasonably large.

    f 

This indicates a defect in one or more memory reporters. The invalid values are highlighted.
Explicit Allocations

0.00 MB (100.0%) -- explicit
├──0.00 MB (100.0%) ── a
└──0.00 MB (00.00%) ── heap-unclassified

Other Measurements

0.00 MB ── heap-allocated

End of Q
"##
    );
}

#[test]
fn processes_come_by_main_resident_and_name() {
    let files = [
        r##"{"process": "b", "path": "x", "kind": 2, "units": 0, "amount": 1, "description": "About x."},
        {"process": "a", "path": "x", "kind": 2, "units": 0, "amount": 1, "description": "About x."},
        {"process": "z", "path": "resident", "kind": 2, "units": 0, "amount": 5242880, "description": "About resident."},
        {"process": "Main Process (pid 7)", "path": "x", "kind": 2, "units": 0, "amount": 1, "description": "About x."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 5.00 MB
Main Process (pid 7)
Other Measurements

0.00 MB ── x

End of Main Process (pid 7)
z
Other Measurements

5.00 MB ── resident

End of z
a
Other Measurements

0.00 MB ── x

End of a
b
Other Measurements

0.00 MB ── x

End of b
"##
    );
}

#[test]
fn every_process_is_counted_in_the_total() {
    let files = [
        r##"{"process": "a", "path": "resident", "kind": 2, "units": 0, "amount": 5242880, "description": "About resident."},
        {"process": "a", "path": "resident-unique", "kind": 2, "units": 0, "amount": 2097152, "description": "About resident-unique."},
        {"process": "Main Process", "path": "resident", "kind": 2, "units": 0, "amount": 9437184, "description": "About resident."},
        {"process": "Main Process", "path": "resident-unique", "kind": 2, "units": 0, "amount": 1048576, "description": "About resident-unique."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 11.00 MB
Main Process
Other Measurements

9.00 MB ── resident
1.00 MB ── resident-unique

End of Main Process
a
Other Measurements

5.00 MB ── resident
2.00 MB ── resident-unique

End of a
"##
    );
}

#[test]
fn an_empty_process_is_the_main_one() {
    let files = [
        r##"{"process": "", "path": "a", "kind": 2, "units": 0, "amount": 5, "description": "About a."},
        {"process": "b", "path": "a", "kind": 2, "units": 0, "amount": 5, "description": "About a."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
Main Process
Other Measurements

0.00 MB ── a

End of Main Process
b
Other Measurements

0.00 MB ── a

End of b
"##
    );
}
