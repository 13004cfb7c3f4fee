//! The names of groups that are ranges.

use crate::census::item::{age_group, size_class};

#[test]
fn sizes_are_told_apart_at_powers_of_two() {
    let table = [
        (0, "0"),
        (1, "1"),
        (2, "2"),
        (3, "3-4"),
        (4, "3-4"),
        (5, "5-8"),
        (64, "33-64"),
        (65, "65-128"),
        (1 << 63, "4611686018427387905-9223372036854775808"),
        (u64::MAX, "9223372036854775809-18446744073709551615"),
    ];
    for (size, class) in table {
        assert_eq!(size_class(size), class);
    }
}

#[test]
fn ages_are_told_apart_at_edges() {
    let edges = [250, 1000, 90_000, 3_600_000, 172_800_000];
    let table = [
        (0, "under 250 ms"),
        (249, "under 250 ms"),
        (250, "250 ms to 1 s"),
        (1000, "1 s to 90 s"),
        (90_000, "90 s to 1 h"),
        (3_600_000, "1 h to 2 d"),
        (u64::MAX, "2 d and over"),
    ];
    for (age, group) in table {
        assert_eq!(age_group(&edges, age), group);
    }
}
