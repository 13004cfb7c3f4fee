//! Type arguments in the names of functions.

/// Splits `push<String, Global>` into `push` and its arguments without allocators, or returns
/// `None` without arguments.
pub(super) fn split_arguments(name: &str) -> Option<(&str, Vec<&str>)> {
    let inside = name.strip_suffix('>')?;
    let open = inside.find('<').filter(|&at| at > 0)?;
    let (function, list) = (&inside[..open], &inside[open + 1..]);
    let mut arguments = split_list(list)?;
    arguments.retain(|argument| !is_allocator(argument));
    Some((function, arguments))
}

/// Splits a list at its outer commas; `None` if its brackets do not match.
pub(in super::super) fn split_list(list: &str) -> Option<Vec<&str>> {
    let mut arguments = Vec::new();
    let (mut depth, mut start, mut before) = (0_i32, 0, ' ');
    for (at, c) in list.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            // The `>` of `fn() -> u8` closes nothing.
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    arguments.push(list[start..].trim());
    (depth == 0).then_some(arguments)
}

/// Returns whether an argument is an allocator: std's, hashbrown's copy of it, or allocator-api2's.
fn is_allocator(argument: &str) -> bool {
    const GLOBAL: [&str; 3] = ["alloc::Global", "inner::Global", "global::Global"];
    matches!(argument, "Global" | "std::alloc::System")
        || GLOBAL.iter().any(|name| argument.ends_with(name))
        || argument.ends_with("Allocator")
}
