//! Every check as one command.
fn main() {}
