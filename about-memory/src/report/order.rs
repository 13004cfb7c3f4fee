//! Sorts names as Firefox does (ICU, en-US), and keys as JavaScript objects do.

mod names;

use std::cmp::Ordering;

pub use names::Names;

/// Sorts keys as a JavaScript object lists them: array indices by number, then the rest in order of
/// insertion.
pub fn like_an_object<T, K: AsRef<str>>(items: &mut [T], key: impl Fn(&T) -> K) {
    items.sort_by_cached_key(|item| {
        array_index(key(item).as_ref()).map_or((1, 0), |index| (0, index))
    });
}

/// Parses an array index: `7` and `4294967294`, but not `07`, `-1` or `4294967295`.
fn array_index(key: &str) -> Option<u32> {
    let canonical =
        key == "0" || (key.bytes().all(|byte| byte.is_ascii_digit()) && !key.starts_with('0'));
    key.parse().ok().filter(|&index| canonical && index != u32::MAX)
}

/// Sorts with the steps of SpiderMonkey's merge sort.
///
/// For a consistent order this equals any stable sort. If `compare` contradicts itself (NaN, or two
/// main processes), the steps decide.
pub fn sort_by<T: Copy>(items: &mut Vec<T>, mut compare: impl FnMut(T, T) -> Ordering) {
    if items.len() <= 8 {
        return insertion_sort(items, &mut compare);
    }
    let mut width = 4;
    items.chunks_mut(width).for_each(|chunk| insertion_sort(chunk, &mut compare));
    let mut merged = items.clone();
    while width < items.len() {
        for (from, to) in items.chunks(2 * width).zip(merged.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            merge(left, right, to, &mut compare);
        }
        std::mem::swap(items, &mut merged);
        width *= 2;
    }
}

fn insertion_sort<T: Copy>(items: &mut [T], compare: &mut impl FnMut(T, T) -> Ordering) {
    for next in 1..items.len() {
        let item = items[next];
        let mut place = next;
        while place > 0 && compare(items[place - 1], item) == Ordering::Greater {
            items[place] = items[place - 1];
            place -= 1;
        }
        items[place] = item;
    }
}

fn merge<T: Copy>(
    left: &[T],
    right: &[T],
    to: &mut [T],
    compare: &mut impl FnMut(T, T) -> Ordering,
) {
    let in_order = match (left.last(), right.first()) {
        (Some(&last), Some(&first)) => compare(last, first) != Ordering::Greater,
        _ => true,
    };
    if in_order {
        to[..left.len()].copy_from_slice(left);
        to[left.len()..].copy_from_slice(right);
        return;
    }
    let (mut l, mut r) = (0, 0);
    for slot in to {
        let take_left =
            l < left.len() && (r == right.len() || compare(left[l], right[r]) != Ordering::Greater);
        *slot = if take_left { left[l] } else { right[r] };
        if take_left {
            l += 1;
        } else {
            r += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_indices_are_listed_first() {
        let mut keys = ["b", "10", "07", "9", "a", "-1", "0", "4294967295", "4294967294"];
        like_an_object(&mut keys, |key| *key);
        assert_eq!(keys.join(" "), "0 9 10 4294967294 b 07 a -1 4294967295");
    }

    #[test]
    fn sorting_is_stable_at_any_length() {
        for length in [0, 1, 2, 8, 9, 10, 12, 13, 64, 100, 1000] {
            let mut items: Vec<(u32, u32)> = (0..length).map(|i| (i * 7919 % 13, i)).collect();
            let mut expected = items.clone();
            expected.sort();
            sort_by(&mut items, |a, b| a.0.cmp(&b.0));
            assert_eq!(items, expected, "{length}");
        }
    }

    #[test]
    fn questions_are_asked_in_firefoxs_order() {
        let mut asked = Vec::new();
        let mut items: Vec<u32> = (0..10).collect();
        sort_by(&mut items, |a, b| {
            asked.push(format!("{a},{b}"));
            (a * 7919 % 13).cmp(&(b * 7919 % 13))
        });
        let firefox = "0,1 1,2 2,3 4,5 5,6 6,7 5,7 4,7 8,9 3,7 0,7 1,7 1,4 2,4 3,4 6,8 0,8 7,8 1,8 2,8 2,9 3,9";
        assert_eq!(asked.join(" "), firefox);
    }

    #[test]
    fn a_comparison_that_contradicts_itself_ends() {
        let mut items: Vec<u32> = (0..100).collect();
        sort_by(&mut items, |_, _| Ordering::Greater);
        let mut sorted = items.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
    }
}
