//! Groups of numbers: size classes and age groups, and their names.

/// Returns the size class of a block: `33-64`.
pub(super) fn size_class(size: u64) -> String {
    match size.checked_next_power_of_two() {
        Some(power @ 0..=2) => power.min(size).to_string(),
        Some(power) => format!("{}-{power}", power / 2 + 1),
        None => format!("{}-{}", (1_u64 << 63) + 1, u64::MAX),
    }
}

/// Returns the number of the group of an age, from 0 for the youngest.
pub(crate) fn age_place(edges: &[u64], age: u64) -> usize {
    edges.partition_point(|&edge| edge <= age)
}

/// Returns the group of an age: `under 1 s`, `1 s to 1 min`, `1 h and over`.
pub(super) fn age_group(edges: &[u64], age: u64) -> String {
    let at = age_place(edges, age);
    let from = at.checked_sub(1).and_then(|before| edges.get(before)).copied().map(time);
    match (from, edges.get(at).copied().map(time)) {
        (None, Some(to)) => format!("under {to}"),
        (Some(from), Some(to)) => format!("{from} to {to}"),
        (Some(from), None) => format!("{from} and over"),
        (None, None) => "any".to_owned(),
    }
}

/// Returns a time in the biggest unit of which it is a whole number.
fn time(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    let unit = UNITS.iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ms} ms"), |(unit, name)| format!("{} {name}", ms / unit))
}
