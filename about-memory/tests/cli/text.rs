//! Every rule of the page, by the text it comes to.

use super::folder::show;

#[test]
fn sums_and_duplicates() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 3145728, "description": "About t/a."},
        {"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 2097152, "description": "About t/a."},
        {"process": "P", "path": "t/b", "kind": 2, "units": 0, "amount": 1048576, "description": "About t/b."},
        {"process": "P", "path": "f", "kind": 2, "units": 0, "amount": 0, "description": "About f."},
        {"process": "P", "path": "f", "kind": 2, "units": 0, "amount": 5, "description": "About f."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Other Measurements

6.00 MB (100.0%) -- t
├──5.00 MB (83.33%) ── a [2]
└──1.00 MB (16.67%) ── b

0.00 MB ── f

End of P
"##
    );
}

#[test]
fn a_zero_is_replaced_and_not_counted() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 0, "description": "About t/a."},
        {"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 5, "description": "About t/a."},
        {"process": "P", "path": "t/b", "kind": 2, "units": 0, "amount": 0, "description": "About t/b."},
        {"process": "P", "path": "t/b", "kind": 2, "units": 0, "amount": 0, "description": "About t/b."}"##,
    ];
    let text = show(&files, &["-v"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

5 B (100.0%) -- t
├──5 B (100.0%) ── a
└──0 B (00.00%) ── b

End of P
"##
    );
}

#[test]
fn only_kids_are_merged_but_not_into_a_root() {
    let files = [
        r##"{"process": "P", "path": "t/a/b/c", "kind": 2, "units": 0, "amount": 5, "description": "About t/a/b/c."},
        {"process": "P", "path": "u/a/b", "kind": 2, "units": 0, "amount": 6, "description": "About u/a/b."},
        {"process": "P", "path": "u/a/c/d", "kind": 2, "units": 0, "amount": 7, "description": "About u/a/c/d."}"##,
    ];
    let text = show(&files, &["-v"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

5 B (100.0%) -- t
└──5 B (100.0%) ── a/b/c

13 B (100.0%) -- u
└──13 B (100.0%) -- a
   ├───7 B (53.85%) ── c/d
   └───6 B (46.15%) ── b

End of P
"##
    );
}

#[test]
fn heap_unclassified_is_what_no_report_names() {
    let files = [
        r##"{"process": "P", "path": "explicit/a", "kind": 1, "units": 0, "amount": 31457280, "description": "About explicit/a."},
        {"process": "P", "path": "explicit/b", "kind": 0, "units": 0, "amount": 5242880, "description": "About explicit/b."},
        {"process": "P", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 52428800, "description": "About heap-allocated."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Explicit Allocations

55.00 MB (100.0%) -- explicit
├──30.00 MB (54.55%) ── a
├──20.00 MB (36.36%) ── heap-unclassified
└───5.00 MB (09.09%) ── b

Other Measurements

50.00 MB ── heap-allocated

End of P
"##
    );
}

#[test]
fn without_heap_allocated_there_is_a_warning() {
    let files = [
        r##"{"process": "P", "path": "explicit/a", "kind": 1, "units": 0, "amount": 31457280, "description": "About explicit/a."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P

WARNING: the 'heap-allocated' memory reporter does not work for this platform and/or configuration. This means that 'heap-unclassified' is not shown and the 'explicit' tree shows less memory than it should.
Explicit Allocations

30.00 MB (100.0%) -- explicit
└──30.00 MB (100.0%) ── a

End of P
"##
    );
}

#[test]
fn tiny_kids_are_gathered() {
    let files = [
        r##"{"process": "P", "path": "t/large", "kind": 2, "units": 0, "amount": 1000, "description": "About t/large."},
        {"process": "P", "path": "t/small", "kind": 2, "units": 0, "amount": 5, "description": "About t/small."},
        {"process": "P", "path": "t/smaller", "kind": 2, "units": 0, "amount": 4, "description": "About t/smaller."},
        {"process": "P", "path": "t/smallest", "kind": 2, "units": 0, "amount": 3, "description": "About t/smallest."},
        {"process": "P", "path": "u/large", "kind": 2, "units": 0, "amount": 1000, "description": "About u/large."},
        {"process": "P", "path": "u/small", "kind": 2, "units": 0, "amount": 5, "description": "About u/small."}"##,
    ];
    let text = show(&files, &["--units", "bytes"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

1,012 B (100.0%) -- t
├──1,000 B (98.81%) ── large
└─────12 B (01.19%) ++ (3 tiny)

1,005 B (100.0%) -- u
├──1,000 B (99.50%) ── large
└──────5 B (00.50%) ── small

End of P
"##
    );
}

#[test]
fn kids_that_are_all_tiny_are_closed() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": 1000, "description": "About t/a."},
        {"process": "P", "path": "t/b/x", "kind": 2, "units": 0, "amount": 6, "description": "About t/b/x."},
        {"process": "P", "path": "t/b/y", "kind": 2, "units": 0, "amount": 3, "description": "About t/b/y."}"##,
    ];
    let text = show(&files, &["--units", "bytes"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

1,009 B (100.0%) -- t
├──1,000 B (99.11%) ── a
└──────9 B (00.89%) ++ b

End of P
"##
    );
}

#[test]
fn names_sort_as_icu_has_it() {
    let files = [
        r##"{"process": "P", "path": "b", "kind": 2, "units": 1, "amount": 5, "description": "About b."},
        {"process": "P", "path": "B", "kind": 2, "units": 1, "amount": 5, "description": "About B."},
        {"process": "P", "path": "a", "kind": 2, "units": 1, "amount": 5, "description": "About a."},
        {"process": "P", "path": "10", "kind": 2, "units": 1, "amount": 5, "description": "About 10."},
        {"process": "P", "path": "9", "kind": 2, "units": 1, "amount": 5, "description": "About 9."},
        {"process": "P", "path": "(x)", "kind": 2, "units": 1, "amount": 5, "description": "About (x)."},
        {"process": "P", "path": "_x", "kind": 2, "units": 1, "amount": 5, "description": "About _x."},
        {"process": "P", "path": "é", "kind": 2, "units": 1, "amount": 5, "description": "About é."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Other Measurements

5 ── _x
5 ── (x)
5 ── 10
5 ── 9
5 ── a
5 ── b
5 ── B
5 ── é

End of P
"##
    );
}

#[test]
fn invalid_values_are_marked_listed_and_in_sight() {
    let files = [
        r##"{"process": "P", "path": "explicit/a", "kind": 1, "units": 0, "amount": 943718400, "description": "About explicit/a."},
        {"process": "P", "path": "explicit/b/c", "kind": 1, "units": 0, "amount": -5, "description": "About explicit/b/c."},
        {"process": "P", "path": "explicit/b/d", "kind": 1, "units": 0, "amount": 3, "description": "About explicit/b/d."},
        {"process": "P", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 943718400, "description": "About heap-allocated."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P

WARNING: the following values are negative or unreasonably large.

    explicit/(2 tiny)/b
    explicit/(2 tiny)/b/c 

This indicates a defect in one or more memory reporters. The invalid values are highlighted.
Explicit Allocations

900.00 MB (100.0%) -- explicit
├──900.00 MB (100.0%) ── a
└────0.00 MB (00.00%) -- (2 tiny)
     ├──0.00 MB (00.00%) ── heap-unclassified
     └──-0.00 MB (-00.00%) -- b [?!]
        ├───0.00 MB (00.00%) ── d
        └──-0.00 MB (-00.00%) ── c [?!]

Other Measurements

900.00 MB ── heap-allocated

End of P
"##
    );
}

#[test]
fn all_of_a_negative_tree_is_invalid() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": -5, "description": "About t/a."},
        {"process": "P", "path": "t/b", "kind": 2, "units": 0, "amount": 2, "description": "About t/b."},
        {"process": "P", "path": "t/c", "kind": 2, "units": 0, "amount": 0, "description": "About t/c."}"##,
    ];
    let text = show(&files, &["-v"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0 B
P
Other Measurements

-3 B (100.0%) -- t [?!]
├───2 B (-66.67%) ── b [?!]
├───0 B (-00.00%) ── c [?!]
└──-5 B (166.67%) ── a [?!]

End of P
"##
    );
}

#[test]
fn units_have_their_forms() {
    let files = [
        r##"{"process": "P", "path": "t/a", "kind": 2, "units": 3, "amount": 12345, "description": "About t/a."},
        {"process": "P", "path": "c", "kind": 2, "units": 1, "amount": 1234567, "description": "About c."},
        {"process": "P", "path": "d", "kind": 2, "units": 2, "amount": 17, "description": "About d."},
        {"process": "P", "path": "p", "kind": 2, "units": 3, "amount": -5, "description": "About p."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Other Measurements

123.45% (100.0%) -- t
└──123.45% (100.0%) ── a

1,234,567 ── c
       17 ── d
   -0.05% ── p [?!]

End of P
"##
    );
}

#[test]
fn backslashes_stand_for_slashes() {
    let files = [
        r##"{"process": "P", "path": "t/http:\\\\a\\b", "kind": 2, "units": 1, "amount": 5, "description": "About t/http:\\\\a\\b."},
        {"process": "P", "path": "t/c", "kind": 2, "units": 1, "amount": 6, "description": "About t/c."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Other Measurements

11 (100.0%) -- t
├───6 (54.55%) ── c
└───5 (45.45%) ── http://a/b

End of P
"##
    );
}

#[test]
fn a_filter_leaves_reports_out_before_anything_is_summed() {
    let files = [
        r##"{"process": "P", "path": "explicit/a", "kind": 1, "units": 0, "amount": 31457280, "description": "About explicit/a."},
        {"process": "P", "path": "explicit/b", "kind": 1, "units": 0, "amount": 5242880, "description": "About explicit/b."},
        {"process": "P", "path": "heap-allocated", "kind": 2, "units": 0, "amount": 52428800, "description": "About heap-allocated."},
        {"process": "P", "path": "resident", "kind": 2, "units": 0, "amount": 94371840, "description": "About resident."}"##,
    ];
    let text = show(&files, &["--filter", "explicit/a"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 90.00 MB
P
Explicit Allocations

30.00 MB (100.0%) -- explicit
└──30.00 MB (100.0%) ── a

End of P
"##
    );
}

#[test]
fn nothing_is_said_too() {
    let files = [
        r##"{"process": "P", "path": "a", "kind": 2, "units": 0, "amount": 5, "description": "About a."}"##,
    ];
    let text = show(&files, &["--filter", "none"]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
No results found.
"##
    );
}

#[test]
fn segments_keep_what_a_path_cannot_say() {
    let files = [
        r##"{"process": "P", "path": "t/C:\\dir/x", "kind": 2, "units": 1, "amount": 5, "description": "About t/C:\\dir/x.", "segments": ["t", "C:\\dir", "x/y"]},
        {"process": "P", "path": "t/b", "kind": 2, "units": 1, "amount": 6, "description": "About t/b."}"##,
    ];
    let text = show(&files, &[]);
    assert_eq!(
        text,
        r##"Total resident memory (approximate) -- 0.00 MB
P
Other Measurements

11 (100.0%) -- t
├───6 (54.55%) ── b
└───5 (45.45%) ── C:\dir/x/y

End of P
"##
    );
}

#[test]
fn each_further_report_of_a_path_is_counted() {
    let report = |amount: u32| {
        format!(
            r##"{{"process": "P", "path": "t/a", "kind": 2, "units": 0, "amount": {amount}, "description": "About t/a."}}"##
        )
    };
    for (reports, line) in [
        (1, "5 B (100.0%) -- t\n└──5 B (100.0%) ── a\n"),
        (2, "10 B (100.0%) -- t\n└──10 B (100.0%) ── a [2]\n"),
        (4, "20 B (100.0%) -- t\n└──20 B (100.0%) ── a [4]\n"),
    ] {
        let file = vec![report(5); reports].join(",");
        let text = show(&[&file], &["-v"]);
        assert!(text.contains(line), "{text}");
    }
}
