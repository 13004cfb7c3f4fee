//! Shows memory reports and dumps as text.
fn main() {}
